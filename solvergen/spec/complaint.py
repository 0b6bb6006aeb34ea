"""One departure from the shape of a spec, in words for people."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from solvergen.errors import Diagnostic, Location
from solvergen.spec.core_schema import resolve
from solvergen.spec.document import (
    ChangeDocument,
    ConstraintDocument,
    CounterpartDocument,
    HyperparameterDocument,
    OptionDocument,
    ReferenceDocument,
    SpecDocument,
    StateDocument,
    StatementDocument,
    TableauDocument,
)
from solvergen.spec.limits import MAX_TEXT
from solvergen.spec.source import Source
from solvergen.spec.suggest import instead_of_key
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

Path = tuple[str | int, ...]
"""The keys, and the numbers of list items from 0, that lead to a value."""

EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}

_EXPECTED_OF_CHOICE = {
    "init": "a number or an expression",
    "default": "true, false or a condition",
    "year": "a whole number or text",
    "do": "an equation or a list of them",
    "update": "an equation or a mapping with 'do'",
    **dict.fromkeys(("matrix", "weights", "nodes", "embedded"), "a whole number or a quotient of two"),
}
"""By the key that holds the value, where more than one kind is allowed."""

_SECTIONS: dict[str, type[BaseModel]] = {
    "hyperparameters": HyperparameterDocument,
    "options": OptionDocument,
    "state": StateDocument,
    "constraints": ConstraintDocument,
    "reference": ReferenceDocument,
    "references": ReferenceDocument,
    "counterparts": CounterpartDocument,
    "update": StatementDocument,
    "tableau": TableauDocument,
    "change": ChangeDocument,
}

_EXAMPLES = {
    "hyperparameters": "lr: {default: 1e-3, min: 0}",
    "options": "nesterov: {default: false}",
    "state": "m: {init: 0}",
    "constraints": '- {that: "a < b", message: "a must be below b"}',
    "reference": "reference: {title: ...}",
    "references": "- {title: ...}",
    "counterparts": "- {library: torch, name: torch.optim.Adam}",
    "change": "- {replace: m, do: m = beta*m + grad}",
}

_SHORT = {"hyperparameters": "default", "options": "default", "state": "init"}
"""The key that somebody means who gives only a value."""

AN_EQUATION = "an equation"

_REQUIRED = {
    "name": "add 'name: ...', the optimizer's name in small letters",
    "summary": "add 'summary: ...', one sentence that says what the optimizer is",
    "update": "add 'update:' with the equations under it, each after '- '",
    "default": "add 'default: ...'",
    "title": "add 'title: ...'",
    "library": "add 'library: ...', the library that has it",
    "matrix": "add 'matrix: ...', a row of coefficients for each stage; the first is []",
    "weights": "add 'weights: ...', the coefficients of the slopes in the step itself",
    "that": "add 'that: ...', the condition that must hold",
    "message": "add 'message: ...', what to tell the caller if the condition doesn't hold",
    "do": "add 'do: ...' with the equation",
}


@dataclass(frozen=True)
class Complaint:
    """One of pydantic's errors, and what of the file it is about.

    ``path`` leads to ``node``, whose key is ``key`` if it is in a mapping; ``owner`` is the last key
    on the way. ``branch``: the error is of the second of two kinds that are allowed. ``wanted`` is
    the key that is missing, ``instead`` the one that an unknown key probably stands for.
    """

    kind: str
    context: dict[str, Any]
    path: Path
    node: Node
    key: Scalar | None
    owner: Scalar | None
    branch: bool
    wanted: str
    instead: str | None

    def diagnostic(self, source: Source) -> Diagnostic:
        """The complaint in our words."""
        code, message, hint, at = self._words()
        return Diagnostic(code, message, at, hint, source.line_of(at))

    def _words(self) -> tuple[str, str, str | None, Location]:
        """Code, message, hint and place."""
        where, node = _dotted(self.path), self.node
        here = node.location
        head = self.key.location if self.key is not None else here
        kind = self.kind
        if kind == "missing":
            at = self.owner.location if self.owner is not None else here
            hint = _REQUIRED.get(self.wanted)
            if self.wanted == "name" and self.path:
                hint = "add 'name: ...', the class or function as one imports it"
            return "SG011", f"{where or 'the spec'} has no '{self.wanted}'", hint, at
        if kind == "extra_forbidden":
            inside = f" in {_dotted(self.path[:-1])}" if len(self.path) > 1 else ""
            return "SG010", f"unknown key '{shorten(str(self.path[-1]))}'{inside}", self._key_hint(), head
        if kind == "finite_number":
            return self._not_finite(where)
        if kind == "literal_error":
            return "SG014", f"{where} must be {self.context['expected']}, not {describe(node)}", None, here
        if kind in ("string_too_short", "string_pattern_mismatch"):
            return "SG014", f"{where} is empty", "write something, or remove it", here
        if kind == "string_too_long":
            return "SG003", f"{where} is longer than {MAX_TEXT:,} characters", None, here
        if kind == "too_short":
            return "SG014", f"{where} has nothing in it", _REQUIRED.get(_holder(self.path)), here
        if kind == "too_long":
            message = f"{where} has {_size(node)} entries; at most {self.context['max_length']} are allowed"
            return "SG026", message, None, head
        expected = EXPECTED[kind]
        if self.branch:
            expected = _EXPECTED_OF_CHOICE.get(_holder(self.path), expected)
        return "SG012", f"{where} must be {expected}, not {describe(node)}", self._kind_hint(), here

    def _not_finite(self, where: str) -> tuple[str, str, str | None, Location]:
        assert isinstance(self.node, Scalar)
        written = self.node.text.text
        if "n" in written.lower():  # .nan and .inf, in whatever spelling
            hint = None if self.path[-1] in ("default", "init") else "leave out a bound that isn't needed"
            return "SG013", f"{where} must be a finite number, not {written}", hint, self.node.location
        message = f"{where}: {shorten(written)} is too large for a float64"
        return "SG013", message, None, self.node.location

    def _key_hint(self) -> str:
        """What to write instead of an unknown key."""
        name = str(self.path[-1])
        if self.instead == AN_EQUATION:
            assert isinstance(self.node, Scalar)
            if "?" in name:
                return "write a choice as where(condition, a, b)"
            choice = re.match(r"(?:el)?if\s+(.+)", name)
            if choice is not None or name.strip() == "else":
                when = shorten(choice[1], 40) if choice is not None else "not ..."
                return f'write {{when: {when}, do: "{shorten(self.node.text.text)}"}}'
            if "=" in name:
                return "an equation with ': ' in it needs quotes"
            return f"an equation has a '=': - {shorten(name, 20)} = {shorten(self.node.text.text)}"
        if not name.isascii():
            strange = next(c for c in name if not c.isascii())
            return f"its '{strange}' is not among the letters A to Z, whatever it looks like"
        if self.instead is not None:
            return f"did you mean '{self.instead}'?"
        return "the keys here are " + ", ".join(_known_keys(self.path))

    def _kind_hint(self) -> str | None:
        """What to write instead of a value of the wrong kind."""
        kind, path, node = self.kind, self.path, self.node
        section = str(path[0])
        text = node.text.text if isinstance(node, Scalar) else ""
        if kind == "int_type":
            return "write a quotient: 1/2" if section == "tableau" and self.branch else "write a whole number"
        if kind == "float_type":
            return _number_hint(node, text)
        if kind == "bool_type":
            return "write true or false, without quotes"
        if kind == "string_type":
            if path[-1] == "arxiv":
                return "put it in quotes: as a number it would lose its last zeros"
            if path[-1] == "when" and isinstance(node, Scalar) and node.value is True:
                return "leave the 'when' out if this is always to be there"
            if isinstance(node, Scalar):
                return f"put it in quotes: '{shorten(text)}'"
            return "a text with : , [ ] { } in it needs quotes" if isinstance(node, Mapping) else None
        if section == "update":
            if isinstance(node, Mapping) and node.entries and kind == "list_type":
                return f"equations are a list: - {shorten(node.entries[0][0].text.text, 20)} = ..."
            return "equations are a list, each after '- '"
        if len(path) == 1 and isinstance(node, Sequence) and kind == "dict_type":
            return f"its entries have names: {_EXAMPLES[section]}"
        if colon_hint(node) is not None:
            return colon_hint(node)
        if (
            len(path) == 2
            and section in _SHORT
            and isinstance(node, Scalar)
            and not isinstance(node.value, str)
        ):
            return f"write {shorten(str(path[1]))}: {{{_SHORT[section]}: {shorten(text)}}}"
        return f"write it like this: {_EXAMPLES[section]}" if section in _EXAMPLES else None


def describe(node: Node) -> str:
    """What ``node`` is, for 'must be ..., not ...'."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node.value, bool):
        return node.text.text
    if isinstance(node.value, str):
        return f"the text '{shorten(node.text.text)}'"
    if node.value is None:
        return "nothing"
    return f"the number {shorten(node.text.text)}"


def _dotted(path: Path) -> str:
    """``hyperparameters.lr.default``; items of lists count from 1, as people do."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step + 1}]"
        else:
            words += ("." if words else "") + shorten(step)
    return words


def _holder(path: Path) -> str:
    """The nearest key at or above the end of ``path``."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _size(node: Node) -> int:
    if isinstance(node, Mapping):
        return len(node.entries)
    return len(node.items) if isinstance(node, Sequence) else 1


def _known_keys(path: Path) -> tuple[str, ...]:
    """The keys that may stand where the last one of ``path`` does."""
    document = SpecDocument if len(path) == 1 else _SECTIONS[str(path[0])]
    return tuple(document.model_fields)


def probably_meant(path: Path, node: Node) -> str | None:
    """The key that was meant, or ``AN_EQUATION`` where an equation was."""
    key = str(path[-1])
    near = instead_of_key(key, _known_keys(path))
    if near is None and key.isascii() and path[0] == "update" and isinstance(node, Scalar):
        return AN_EQUATION
    return near


def colon_hint(node: Node) -> str | None:
    """For ``m:1``, which YAML takes for one text."""
    if isinstance(node, Scalar) and re.match(r"[A-Za-z_]\w*:\S", node.text.text):
        return "YAML wants a blank after the colon"
    return None


def _number_hint(node: Node, text: str) -> str | None:
    if not isinstance(node, Scalar):
        return "write one number, such as 0.001 or 1e-3"
    if isinstance(node.value, bool):
        return "write 1 or 0 if a number is meant"
    if not node.plain and not isinstance(resolve(text), str):
        return "write the number without quotes"
    if re.fullmatch(r"[\d_.,eE+-]+", text) and ("_" in text or "," in text):
        return "write the number without _ and ,"
    if re.fullmatch(r"\d+(:\d+)+(\.\d*)?", text):
        return "numbers to the base 60 are no part of YAML 1.2"
    if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.IGNORECASE):
        return "numbers must be finite; a bound that isn't needed is left out"
    if re.fullmatch(r"[-+\d.eE*/() ]+", text):
        return "write the value as one number: nothing is calculated here"
    return "write a number, such as 0.001 or 1e-3"
