"""A tree against the shape of a spec: pydantic judges, this module says it with places."""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from solvergen.errors import Diagnostic, Location
from solvergen.spec.document import (
    OTHER_TAG,
    ConstraintDocument,
    HyperparameterDocument,
    OptionDocument,
    ReferenceDocument,
    SpecDocument,
    StateDocument,
    StatementDocument,
)
from solvergen.spec.limits import MAX_TEXT
from solvergen.spec.source import Source
from solvergen.spec.suggest import instead_of_key
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

_Path = tuple[str | int, ...]

_EXPECTED = {
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
}
"""By the key that holds the value, where more than one kind is allowed."""

_SECTIONS: dict[str, type[BaseModel]] = {
    "hyperparameters": HyperparameterDocument,
    "options": OptionDocument,
    "state": StateDocument,
    "constraints": ConstraintDocument,
    "reference": ReferenceDocument,
    "references": ReferenceDocument,
    "update": StatementDocument,
}

_EXAMPLES = {
    "hyperparameters": "lr: {default: 1e-3, min: 0}",
    "options": "nesterov: {default: false}",
    "state": "m: {init: 0}",
    "constraints": '- {that: "a < b", message: "a must be below b"}',
    "reference": "reference: {title: ...}",
    "references": "- {title: ...}",
}

_REQUIRED = {
    "name": "add 'name: ...', the optimizer's name in small letters",
    "summary": "add 'summary: ...', one sentence that says what the optimizer is",
    "update": "add 'update:' with the equations under it, each after '- '",
    "default": "add 'default: ...'",
    "title": "add 'title: ...'",
    "that": "add 'that: ...', the condition that must hold",
    "message": "add 'message: ...', what to tell the caller if the condition doesn't hold",
    "do": "add 'do: ...' with the equation",
}


def validate(tree: Node, source: Source) -> tuple[SpecDocument | None, list[Diagnostic]]:
    """The document that ``tree`` holds, or None; and every departure from the shape of a spec."""
    found: list[Diagnostic] = []
    missing: set[_Path] = set()
    plain = _plain(tree, (), source, found, missing)
    if not isinstance(tree, Mapping):
        found.append(
            Diagnostic(
                "SG012",
                f"a spec must be a mapping, not {describe(tree)}",
                tree.location,
                _colon_hint(tree) or "it begins with 'name: ...'",
                source.line_of(tree.location),
            )
        )
        return None, found
    try:
        document = SpecDocument.model_validate(plain)
    except ValidationError as error:
        for details in error.errors(include_url=False, include_context=True):
            diagnostic = _explain(details, tree, source, missing)
            if diagnostic is not None:
                found.append(diagnostic)
        return None, found
    return (None if missing else document), found


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


def _plain(node: Node, path: _Path, source: Source, found: list[Diagnostic], missing: set[_Path]) -> Any:
    """``node`` as plain Python values. Empty values are reported and left out (``missing``)."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        items = []
        for i, item in enumerate(node.items):
            if isinstance(item, Scalar) and item.value is None:
                found.append(_empty("an item of the list", item.location, source))
                missing.add((*path, i))
                items.append("-")  # a stand-in that every list of a spec takes or reports
                continue
            items.append(_plain(item, (*path, i), source, found, missing))
        return items
    values = {}
    for key, value in node.entries:
        name = key.text.text
        if isinstance(value, Scalar) and value.value is None:
            # A section with nothing under it (all its lines may be comments) is no mistake.
            if not path and name in _SECTIONS and name not in ("update", "reference"):
                continue
            found.append(_empty(f"'{shorten(name)}'", key.location, source))
            missing.add((*path, name))
            continue
        values[name] = _plain(value, (*path, name), source, found, missing)
    return values


def _empty(what: str, location: Location, source: Source) -> Diagnostic:
    hint = "give it one after the colon, or remove it"
    return Diagnostic("SG012", f"{what} has no value", location, hint, source.line_of(location))


def _explain(details: ErrorDetails, tree: Mapping, source: Source, missing: set[_Path]) -> Diagnostic | None:
    """One of pydantic's errors in our words, at its place in the file."""
    kind = details["type"]
    path, node, key, deepest = _follow(tree, details["loc"])
    where = _dotted(path)
    location = node.location
    if path in missing:
        return None

    def diagnostic(code: str, message: str, hint: str | None, at: Location = location) -> Diagnostic:
        return Diagnostic(code, message, at, hint, source.line_of(at))

    if kind == "missing":
        wanted = str(details["loc"][-1])
        if (*path, wanted) in missing:
            return None
        owner = f"{where} has no '{wanted}'" if path else f"the spec has no '{wanted}'"
        at = deepest.location if deepest is not None and path else location
        return diagnostic("SG011", owner, _REQUIRED.get(wanted), at)
    if kind == "extra_forbidden":
        name = path[-1]
        at = key.location if key is not None else location
        message = f"unknown key '{shorten(str(name))}'{_inside(path)}"
        return diagnostic("SG010", message, _key_hint(path, node), at)
    if kind == "finite_number":
        assert isinstance(node, Scalar)
        written = node.text.text
        if "n" in written.lower():  # .nan and .inf
            return diagnostic("SG013", f"{where} must be a finite number, not {written}", _FINITE_HINT)
        return diagnostic("SG013", f"{where}: {shorten(written)} is too large for a float64", None)
    if kind == "literal_error":
        expected = str(details["ctx"]["expected"])
        return diagnostic("SG014", f"{where} must be {expected}, not {describe(node)}", None)
    if kind in ("string_too_short", "string_pattern_mismatch"):
        return diagnostic("SG014", f"{where} is empty", "write something, or remove the key")
    if kind == "string_too_long":
        return diagnostic("SG003", f"{where} is longer than {MAX_TEXT:,} characters", None)
    if kind == "too_short":
        return diagnostic("SG014", f"{where} has nothing in it", _REQUIRED.get(str(path[-1])))
    if kind == "too_long":
        limit, actual = details["ctx"]["max_length"], _size(node)
        at = key.location if key is not None else location
        return diagnostic("SG026", f"{where} has {actual} entries; at most {limit} are allowed", None, at)
    expected = _EXPECTED.get(kind, details["msg"])
    if OTHER_TAG in details["loc"][-1:]:
        expected = _EXPECTED_OF_CHOICE.get(_holder(path), expected)
    return diagnostic(
        "SG012", f"{where} must be {expected}, not {describe(node)}", _kind_hint(kind, path, node)
    )


_FINITE_HINT = "a hyperparameter without a bound leaves the bound out"


def _follow(tree: Mapping, loc: tuple[int | str, ...]) -> tuple[_Path, Node, Scalar | None, Scalar | None]:
    """Walk along a location of pydantic's, which also names branches of choices.

    Returns the path without those, the node there, its key if it is in a mapping, and the last key
    passed on the way.
    """
    path: list[str | int] = []
    node: Node = tree
    key: Scalar | None = None
    deepest: Scalar | None = None
    for step in loc:
        if isinstance(node, Mapping) and isinstance(step, str):
            value, name = node.get(step), node.key(step)
            if value is None:
                continue
            node, key, deepest = value, name, name
        elif isinstance(node, Sequence) and isinstance(step, int):
            node, key, deepest = node.items[step], None, None
        else:
            continue
        path.append(step)
    return tuple(path), node, key, deepest


def _dotted(path: _Path) -> str:
    """``hyperparameters.lr.default``; items of lists count from 1, as people do."""
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step + 1}]"
        else:
            words += ("." if words else "") + shorten(step)
    return words


def _inside(path: _Path) -> str:
    return f" in {_dotted(path[:-1])}" if len(path) > 1 else ""


def _holder(path: _Path) -> str:
    """The nearest key at or above the end of ``path``."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _size(node: Node) -> int:
    if isinstance(node, Mapping):
        return len(node.entries)
    return len(node.items) if isinstance(node, Sequence) else 1


def _key_hint(path: _Path, node: Node) -> str:
    """What to write instead of an unknown key."""
    name = str(path[-1])
    document = SpecDocument if len(path) == 1 else _SECTIONS[str(path[0])]
    known = tuple(document.model_fields)
    near = instead_of_key(name, known)
    if near is not None:
        return f"did you mean '{near}'?"
    if path[0] == "update" and isinstance(node, Scalar):
        return f"an equation has a '=': - {shorten(name, 20)} = {shorten(node.text.text)}"
    return "the keys here are " + ", ".join(known)


def _colon_hint(node: Node) -> str | None:
    if isinstance(node, Scalar) and re.match(r"\w+:\S", node.text.text):
        return "YAML wants a blank after the colon"
    return None


def _kind_hint(kind: str, path: _Path, node: Node) -> str | None:
    """What to write instead of a value of the wrong kind."""
    section = str(path[0])
    colon = _colon_hint(node)
    text = node.text.text if isinstance(node, Scalar) else ""
    if kind in ("float_type", "int_type"):
        return _number_hint(node, text)
    if kind == "bool_type":
        return "write true or false"
    if kind == "string_type":
        if path[-1] == "arxiv":
            return "put it in quotes: as a number it would lose its last zeros"
        if isinstance(node, Scalar):
            return f"put it in quotes: '{shorten(text)}'"
        if isinstance(node, Mapping) and path[-1] in ("when", "that", "do"):
            return "a text with ': ' or { } in it needs quotes"
        return None
    if section == "update":
        if isinstance(node, Mapping) and node.entries and kind == "list_type":
            return f"equations are a list: - {shorten(node.entries[0][0].text.text, 20)} = ..."
        return "equations are a list, each after '- '"
    if colon is not None:
        return colon
    if len(path) == 1 and isinstance(node, Sequence) and kind == "dict_type":
        return f"its entries have names: {_EXAMPLES[section]}"
    return f"write it like this: {_EXAMPLES[section]}" if section in _EXAMPLES else None


def _number_hint(node: Node, text: str) -> str | None:
    if not isinstance(node, Scalar):
        return "write one number, such as 0.001 or 1e-3"
    if isinstance(node.value, bool):
        return "write 1 or 0 if a number is meant"
    if re.fullmatch(r"[\d_.,eE+-]+", text) and ("_" in text or "," in text):
        return "write the number without _ and ,"
    if re.fullmatch(r"[\d:.]+", text):
        return "numbers to the base 60 are no part of YAML 1.2"
    if re.fullmatch(r"[-+]?(nan|inf|infinity)", text, re.IGNORECASE):
        return "numbers must be finite; a bound that isn't needed is left out"
    if re.fullmatch(r"[-+\d.eE*/() ]+", text):
        return "write the value as one number: nothing is calculated here"
    if not node.plain:
        return "write the number without quotes"
    return "write a number, such as 0.001 or 1e-3"
