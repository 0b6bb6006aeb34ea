"""A spec that is derived from another: what it declares anew, and what it changes of the equations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from solvergen.errors import Diagnostic, Location
from solvergen.spec.made import relocated, scalar_at, whole_number, with_update
from solvergen.spec.names import PREDECLARED
from solvergen.spec.source import Source
from solvergen.spec.suggest import instead_of_key
from solvergen.spec.tree import Mapping, Node, Scalar, Sequence, shorten

DECLARING = ("hyperparameters", "options", "state")
KINDS = ("replace", "before", "after", "remove")
_SINGULAR = {"hyperparameters": "hyperparameter", "options": "option", "state": "state"}
_TARGET = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*(=(?!=)|$)")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass
class _Equation:
    """One equation of the base, what stands before and after it, and what stands for it."""

    target: str
    item: Node
    texts: tuple[str, ...]
    before: list[Node] = field(default_factory=list)
    after: list[Node] = field(default_factory=list)
    instead: list[Node] | None = None

    @property
    def items(self) -> list[Node]:
        return [*self.before, *([self.item] if self.instead is None else self.instead), *self.after]


def extended(
    tree: Mapping, base: Mapping, source: Source, key: str
) -> tuple[Mapping, bool, list[Diagnostic]]:
    """``tree`` with all that it has of ``base``, whether that is whole, and what is wrong.

    ``base`` is a spec without errors, written out. What comes from it stands where ``tree`` has its name.
    """
    return _Extension(tree, base, source, key).whole()


class _Extension:
    def __init__(self, tree: Mapping, base: Mapping, source: Source, key: str) -> None:
        self.tree = tree
        self.source = source
        self.key = key
        named = tree.get(key)
        assert isinstance(named, Scalar)
        self.name = named.text.text
        self.place = named.location
        moved = relocated(base, self.place, source)
        assert isinstance(moved, Mapping)
        self.base = moved
        self.found: list[Diagnostic] = []
        self.removed: dict[str, Scalar] = {}

    def report(self, code: str, message: str, place: Location, hint: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, place, hint, self.source.line_of(place)))

    def whole(self) -> tuple[Mapping, bool, list[Diagnostic]]:
        sections = dict(self.tree.by_key)
        for section in DECLARING:
            merged = self.declarations(section)
            if merged is not None:
                sections[section] = merged
        for section in ("constraints", "penalty", "project"):
            if section in self.base.by_key and section not in sections:
                sections[section] = self.base.by_key[section]
        self.add_references(sections)
        result = Mapping(sections, self.tree.location)
        equations = self.equations() if "update" not in sections else []
        if "update" not in sections:
            key = self.tree.key(self.key)
            assert key is not None
            result = with_update(result, key, [item for e in equations for item in e.items])
        self.check_removed(result, equations)
        return result, not self.found, self.found

    def declarations(self, section: str) -> tuple[Scalar, Node] | None:
        """The base's entries, those of the same name replaced, null ones removed, others added."""
        head, node = self.tree.by_key.get(section, (None, None))
        _, theirs = self.base.by_key.get(section, (None, None))
        entries = dict(theirs.by_key) if isinstance(theirs, Mapping) else {}
        if node is not None and not (isinstance(node, Mapping) or _is_null(node)):
            return None  # of the wrong kind, which is complained about
        for name, (key, entry) in (node.by_key if isinstance(node, Mapping) else {}).items():
            if not _is_null(entry):
                entries[name] = (key, entry)
            elif name in entries:
                del entries[name]
                self.removed[name] = key
            else:
                what = _SINGULAR[section]
                message = f"{self.name} has no {what} '{shorten(name)}' that could be removed"
                self.report("SG036", message, key.location, _near(name, entries))
        if head is None and not entries:
            return None
        place = node.location if node is not None else self.place
        return head or scalar_at(section, place, self.source), Mapping(entries, place)

    def add_references(self, sections: dict[str, tuple[Scalar, Node]]) -> None:
        """References are the spec's own and then the base's."""
        single, several = sections.get("reference"), sections.get("references")
        theirs = [*_items(self.base.get("reference")), *_items(self.base.get("references"))]
        if not theirs or (single is not None and several is not None):
            return
        own = single or several
        if own is None:
            sections["references"] = (
                scalar_at("references", self.place, self.source),
                Sequence(tuple(theirs), self.place),
            )
        elif isinstance(own[1], (Mapping if single is not None else Sequence)):
            sections.pop("reference", None)
            listed = Sequence((*_items(own[1]), *theirs), own[1].location)
            sections["references"] = (scalar_at("references", own[0].location, self.source), listed)

    def equations(self) -> list[_Equation]:
        """The base's equations with the changes."""
        equations = [equation for item in _items(self.base.get("update")) for equation in _single(item)]
        for change in _items(self.tree.get("change")):
            if isinstance(change, Mapping):
                self.change(change, equations)
        return equations

    def change(self, change: Mapping, equations: list[_Equation]) -> None:
        given = [kind for kind in KINDS if kind in change.by_key]
        if len(given) != 1:
            if given:
                message, code = f"both '{given[0]}' and '{given[1]}' in one change", "SG015"
            else:
                message, code = "the change doesn't say which equation", "SG011"
            self.report(code, message, change.location, "one of replace, before, after and remove: a target")
            return
        kind = given[0]
        do = change.get("do")
        if (do is None) is not (kind == "remove"):
            code = "SG011" if do is None else "SG015"
            message = f"'{kind}' without 'do'" if do is None else "both 'remove' and 'do' in one change"
            hint = (
                "add 'do: ...' with the equation" if do is None else "to have another equation there: replace"
            )
            self.report(code, message, change.location, hint)
            return
        equation = self.named(change, kind, equations)
        if equation is None:
            return
        new: list[Node] = []
        if do is not None:
            when = {k: e for k, e in change.by_key.items() if k in ("when", "do")}
            new = [Mapping(when, change.location)]
        if kind == "before":
            equation.before += new
        elif kind == "after":
            equation.after += new
        elif equation.instead is not None:
            message = f"this equation of {self.name} is replaced or removed already"
            self.report("SG015", message, change.location)
        else:
            equation.instead = new

    def named(self, change: Mapping, kind: str, equations: list[_Equation]) -> _Equation | None:
        """The equation that a change is about."""
        target, number = change.get(kind), change.get("number")
        if not isinstance(target, Scalar) or not isinstance(target.value, str):
            return None
        found = [e for e in equations if e.target == target.value.strip()]
        if not found:
            message = f"{self.name} has no equation for '{shorten(target.value)}'"
            self.report("SG036", message, target.location, _near(target.value, [e.target for e in equations]))
            return None
        if number is not None:
            which = whole_number(number)
            if which is None:
                return None
            if not 1 <= which <= len(found):
                message = f"{self.name} has {len(found)} of '{shorten(target.value)}', none of number {which}"
                self.report("SG036", message, number.location)
                return None
            return found[which - 1]
        if len(found) > 1:
            message = f"{self.name} has {len(found)} equations for '{shorten(target.value)}'"
            self.report("SG036", message, target.location, "say which, counted from 1: number: 1")
            return None
        return found[0]

    def check_removed(self, result: Mapping, equations: list[_Equation]) -> None:
        """What is removed isn't used any more by what has stayed."""
        if "update" in self.tree.by_key:
            return  # all equations stand in this file: that its names are unknown is said there
        for name, key in self.removed.items():
            if any(result_has(result, section, name) for section in DECLARING) or name in PREDECLARED:
                continue
            for equation in equations:
                if equation.instead is None and any(name in _WORD.findall(t) for t in equation.texts):
                    equation_text = shorten(equation.texts[-1])
                    message = f"'{shorten(name)}' is removed, but {self.name} uses it: {equation_text}"
                    hint = (
                        f"replace or remove that equation, too, under 'change': {{remove: {equation.target}}}"
                    )
                    self.report("SG037", message, key.location, hint)
                    break


def result_has(tree: Mapping, section: str, name: str) -> bool:
    """Does a section declare the name?"""
    node = tree.get(section)
    return isinstance(node, Mapping) and name in node.by_key


def _single(item: Node) -> list[_Equation]:
    """An item of an update as one for each of its equations."""
    if isinstance(item, Scalar):
        return [_Equation(_target(item), item, (item.text.text,))]
    assert isinstance(item, Mapping)
    found = []
    head, do = item.by_key["do"]
    when = {"when": item.by_key["when"]} if "when" in item.by_key else {}
    conditions = tuple(node.text.text for _, node in when.values() if isinstance(node, Scalar))
    for equation in do.items if isinstance(do, Sequence) else (do,):
        assert isinstance(equation, Scalar)
        alone = Mapping({**when, "do": (head, equation)}, item.location)
        found.append(_Equation(_target(equation), alone, (*conditions, equation.text.text)))
    return found


def _target(equation: Scalar) -> str:
    match = _TARGET.match(equation.text.text)
    return match[1] if match else ""


def _items(node: Node | None) -> tuple[Node, ...]:
    if isinstance(node, Sequence):
        return node.items
    return (node,) if isinstance(node, Mapping) else ()


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.plain and node.value is None


def _near(name: str, known: list[str] | dict[str, tuple[Scalar, Node]]) -> str | None:
    names = tuple(dict.fromkeys(known))
    near = instead_of_key(name, names)
    if near is not None:
        return f"did you mean '{near}'?"
    return f"there are {', '.join(names)}" if names else None
