"""Which values are elements, which conditions, and which are known to be whole: docs/language.md, "Scalars
and elements" and "Whole numbers", on terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from solvergen.verify.fuzzing.rule import Rule
from solvergen.verify.fuzzing.terms import AXES, CONDITIONS, GRADIENT, LINES, REDUCTIONS, Term, names_in


@dataclass(frozen=True, slots=True)
class Kind:
    """Of a value: is it one for each element, is it a condition, is it known to be whole? ``lines``: "rows",
    "columns" or "matrices" if there is one for each of these."""

    element: bool
    condition: bool = False
    whole: bool = False
    lines: str = ""


def together(kinds: Iterable[Kind]) -> tuple[bool, str]:
    """Where values of these kinds meet: are they elements then, and if not, of which lines?"""
    found = list(kinds)
    lines = {kind.lines for kind in found}
    if any(kind.element for kind in found) or {"rows", "columns"} <= lines:
        return True, ""
    return False, next((line for line in ("rows", "columns", "matrices") if line in lines), "")


SCALAR, ELEMENT = Kind(element=False), Kind(element=True)
_WHOLE_OF_WHOLE = ("neg", "+", "-", "*", "//", "%", "abs", "sign", "min", "max", "clip", "where")


def kind_of(term: Term, names: Mapping[str, Kind]) -> Kind:
    """The kind of ``term``, given those of its names."""
    if term.op == "number":
        return Kind(element=False, whole=term.text.isdigit())
    if term.op == "name":
        return names[term.text]
    if term.op == GRADIENT:
        return ELEMENT
    if term.op in REDUCTIONS:
        return Kind(element=False, lines=LINES.get(term.text, ""))
    args = [kind_of(arg, names) for arg in term.args]
    element, lines = together(args)
    if term.op in CONDITIONS:
        return Kind(element, condition=True, lines=lines)
    if element:
        return ELEMENT
    if lines:
        return Kind(element=False, lines=lines)
    if term.op == "floor":
        return Kind(element=False, whole=True)
    if term.op == "neg" and term.args[0].op == "number" and float(term.args[0].text) == 0:
        return SCALAR  # a written -0 is -0.0, which no whole number is
    if term.op == "**":
        whole = args[0].whole and is_written_count(term.args[1])
    else:
        numbers = args[1:] if term.op == "where" else args
        whole = term.op in _WHOLE_OF_WHOLE and all(arg.whole for arg in numbers)
    return Kind(element=False, whole=whole)


def is_written_count(exponent: Term) -> bool:
    """Is it a constant that comes to a whole number, and not a negative one?"""
    from solvergen.verify.fuzzing.meaning import constant_value

    value = constant_value(exponent)
    return value is not None and value.is_exact and value.low >= 0 and value.low == int(value.low) < 2**53


def kinds_of(rule: Rule) -> dict[str, Kind]:
    """The kind of every name. A temporary has one over all its assignments, the least that holds them all."""
    whole = Kind(element=False, whole=True)
    known = {"param": ELEMENT, "grad": ELEMENT, "t": whole, AXES: whole}
    known |= {name: Kind(element=False, whole=whole) for name, whole in rule.hyperparameters.items()}
    known |= {option.name: Kind(element=False, condition=True) for option in rule.options}
    known |= {
        state.name: Kind(element=state.shape == "param", lines=LINES.get(state.shape, ""))
        for state in rule.states
    }
    found: dict[str, Kind] = {}
    declared = frozenset(known)
    while True:
        before = dict(found)
        for statement in rule.update:
            names = known | found
            if statement.target in declared or not names_in(statement.value) <= names.keys():
                continue
            kind, earlier = kind_of(statement.value, names), found.get(statement.target)
            found[statement.target] = kind if earlier is None else _both(kind, earlier)
        if found == before:
            return known | found


def _both(a: Kind, b: Kind) -> Kind:
    element, lines = together((a, b))
    return Kind(element, a.condition, a.whole and b.whole and not element and not lines, lines)
