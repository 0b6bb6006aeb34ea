"""Strategies for the expressions of a rule: well typed, over the names that exist where they stand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import strategies as st

from solvergen.verify.fuzzing.kinds import Kind, kind_of
from solvergen.verify.fuzzing.meaning import constant_value
from solvergen.verify.fuzzing.terms import (
    AXES,
    COMPARISONS,
    FUNCTIONS,
    LINES,
    OVER_ALL,
    REDUCTIONS,
    WIDER,
    Term,
    call,
    name,
    names_in,
    number,
)

NUMERALS = (
    "1", "2", "0.5", "0", "3", "0.1", "1e-8", "0.9", "0.999", "10", "4", "7", "0.0", "1.0", "2.0", ".25",
    "5.", "1E3", "1e+2", "64", "65", "100", "1000", "1e30", "1e-30", "1e300", "1e-300", "5e-324",
    "3.5e38", "1e-45", "1.7976931348623157e308", "9007199254740993", "16777217", "0.30000000000000004",
    "2.2250738585072011e-308",
    "0.1000000000000000055511151231257827021181583404541015625", "123456789.123456789", "1e22", "1e23",
)  # fmt: skip
"""Literals in many spellings, plain ones first."""

_numerals = st.one_of(
    st.sampled_from(NUMERALS),
    st.sampled_from(NUMERALS[:20]),
    st.floats(0, allow_infinity=False, allow_nan=False).map(repr),
    st.floats(0, 10).map(repr),
    st.integers(0, 2**70).map(str),
).map(number)

_EXPONENTS = tuple(
    number(text) if text[0] != "-" else call("neg", number(text[1:]))
    for text in (
        "2", "3", "0.5", "1", "0", "4", "5", "7", "-1", "-2", "1.5", "-0.5", "2.0", "64", "-64", "65", "1e1",
        "31", "63", "-3", "0.3333333333333333", "2147483647", "1e300",
    )
)  # fmt: skip

_NUMBERS = (
    *("leaf",) * 4, "+", "-", "*", "/", "+", "-", "*", "/", "+", "*", "neg", "**", "**", "//", "%",
    "min", "max", "clip", "where", "where", "sqrt", "abs", "sign", "floor", "exp", "log", "tanh", "cbrt",
)  # fmt: skip
_REDUCTIONS = ("sum", "mean", "dot", "norm2", "norm1", "max_abs", "count_nonzero", "norm2", "sum")
_CONDITIONS = ("compare", "compare", "compare", "compare", "and", "or", "not", "chain", "named")


@dataclass(frozen=True)
class Symbol:
    """A name that an expression may use. ``exists``: the settings in which it does, a bit for each.

    ``element``: it may be one for each element; ``lines``: or one for each of these; ``certain``: it is,
    whatever else is assigned to it.
    """

    name: str
    exists: int
    element: bool = False
    condition: bool = False
    option: bool = False
    certain: bool = False
    lines: str = ""


@dataclass(frozen=True)
class Surroundings:
    """Where an expression stands: the names, the settings under which it is there, whether elements may
    occur. ``columns``: for each option the settings in which it is on. ``reductions``: may there be any?
    ``lines``: values of which lines may occur, if elements mayn't; ``words``: the rule's words for lines.
    """

    symbols: tuple[Symbol, ...]
    settings: int
    elements: bool
    columns: dict[str, int]
    reductions: bool = False
    lines: frozenset[str] = WIDER[""]
    words: tuple[str, ...] = ()

    def kinds(self) -> dict[str, Kind]:
        """The kinds of names, as far as they are certain."""
        known = {AXES: Kind(element=False, whole=True)}
        for s in self.symbols:
            lines = s.lines if s.certain else ""
            known[s.name] = Kind(element=s.certain and not lines, condition=s.condition, lines=lines)
        return known

    def within(self, settings: int) -> Surroundings:
        """The same under fewer settings; unchanged if there would be none."""
        fewer = self.settings & settings
        return replace(self, settings=fewer) if fewer else self

    def usable(self, *, condition: bool) -> list[Symbol]:
        """The names that may be read here."""
        return [
            s
            for s in self.symbols
            if s.condition is condition
            and self.settings & ~s.exists == 0
            and (self.elements or (not s.element and s.lines in self.lines))
        ]

    def along(self) -> list[str]:
        """The words for lines whose values may occur."""
        return [word for word in self.words if self.elements or LINES[word] in self.lines]

    def of(self, lines: str) -> Surroundings:
        """The same for values of these lines."""
        return replace(self, elements=False, lines=WIDER[lines])


@st.composite
def numbers(draw: st.DrawFn, here: Surroundings, depth: int = 4) -> Term:
    """Numbers of at most ``depth`` levels. Each shrinks towards a name."""
    op = draw(st.sampled_from(_NUMBERS)) if depth > 0 else "leaf"
    if op == "leaf":
        return draw(_leaves(here))
    if here.reductions and draw(st.integers(0, 7)) == 7:
        return draw(reductions(here, depth))
    if op == "where":
        condition = draw(conditions(here, depth - 1))
        chosen = settings_of(condition, here.columns)
        first = here if chosen is None else here.within(chosen)
        second = here if chosen is None else here.within(~chosen)
        return mended(
            call("where", condition, draw(numbers(first, depth - 1)), draw(numbers(second, depth - 1)))
        )
    if op == "**":
        base = draw(numbers(here, depth - 1))
        if draw(st.integers(0, 3)):
            return mended(call("**", base, draw(st.sampled_from(_EXPONENTS))))
        return mended(call("**", base, draw(numbers(here, min(depth - 1, 2)))))
    arity = 1 if op == "neg" else FUNCTIONS.get(op, 2)
    return mended(call(op, *[draw(numbers(here, depth - 1)) for _ in range(arity)]))


@st.composite
def reductions(draw: st.DrawFn, here: Surroundings, depth: int) -> Term:
    """Reductions of at most ``depth`` levels, over the tensor or over all; others may be among their
    arguments."""
    op = draw(st.sampled_from(_REDUCTIONS))
    words = here.along()
    if here.words and draw(st.integers(0, 3)) == 3:
        return draw(_of_lines(here, op, depth))
    inside = replace(here, elements=True)
    args = [_of_elements(draw(numbers(inside, min(depth - 1, 2))), here) for _ in range(REDUCTIONS[op])]
    return Term(op, tuple(args), draw(st.sampled_from(("", "", OVER_ALL, *words, *words))))


@st.composite
def _of_lines(draw: st.DrawFn, here: Surroundings, op: str, depth: int) -> Term:
    """A reduction of values of lines: to one number, or one a matrix."""
    word = draw(st.sampled_from(here.words))
    lines, inside = LINES[word], here.of(LINES[word])
    args = []
    for _ in range(REDUCTIONS[op]):
        drawn = draw(numbers(inside, min(depth - 1, 2)))
        if kind_of(drawn, here.kinds()).lines != lines:
            drawn = mended(call("*", Term("mean", (name("grad"),), word), drawn))
        args.append(drawn)
    matrices = ["matrices"] if lines != "matrices" and "matrices" in here.along() else []
    return Term(op, tuple(args), draw(st.sampled_from(("", *matrices))))


def _of_elements(term: Term, here: Surroundings) -> Term:
    """``term``, with the gradient in it unless it has a value for each element for certain."""
    return term if kind_of(term, here.kinds()).element else mended(call("*", name("grad"), term))


@st.composite
def _leaves(draw: st.DrawFn, here: Surroundings) -> Term:
    usable = here.usable(condition=False)
    # Elements twice: there are mostly more scalars to choose from.
    choices = [s.name for s in usable for _ in range(1 + (s.element or bool(s.lines)))]
    choices += [AXES] if here.words else []
    if choices and draw(st.integers(0, 2)) > 0:
        return name(draw(st.sampled_from(choices)))
    return draw(_numerals)


@st.composite
def conditions(draw: st.DrawFn, here: Surroundings, depth: int = 3) -> Term:
    """Conditions of at most ``depth`` levels."""
    kind = draw(st.sampled_from(_CONDITIONS)) if depth > 1 else "compare"
    usable = here.usable(condition=True)
    if kind == "named" and usable:
        return name(draw(st.sampled_from([s.name for s in usable])))
    if kind == "not":
        return call("not", draw(conditions(here, depth - 1)))
    if kind in ("and", "or"):
        first, second = draw(conditions(here, depth - 1)), draw(conditions(here, depth - 1))
        return call(kind, first, second)
    values = [draw(numbers(here, min(depth - 1, 2))) for _ in range(3 if kind == "chain" else 2)]
    links = [call(draw(st.sampled_from(COMPARISONS)), a, b) for a, b in pairwise(values)]
    return links[0] if len(links) == 1 else call("and", *links)


@st.composite
def option_conditions(draw: st.DrawFn, columns: dict[str, int], depth: int = 2) -> Term:
    """Conditions purely of options."""
    kind = draw(st.sampled_from(("name", "name", "name", "not", "and", "or"))) if depth > 0 else "name"
    if kind == "name":
        return name(draw(st.sampled_from(sorted(columns))))
    parts = [draw(option_conditions(columns, depth - 1)) for _ in range(1 if kind == "not" else 2)]
    return call(kind, *parts)


def settings_of(term: Term, columns: dict[str, int]) -> int | None:
    """The settings in which a condition of options holds, as bits; None if it isn't purely of options."""
    if term.op == "name":
        return columns.get(term.text)
    if term.op not in ("not", "and", "or"):
        return None
    parts = [settings_of(arg, columns) for arg in term.args]
    if any(part is None for part in parts):
        return None
    tables = [part for part in parts if part is not None]
    if term.op == "not":
        return ~tables[0]
    return tables[0] & tables[1] if term.op == "and" else tables[0] | tables[1]


def mended(term: Term) -> Term:
    """``term``, with what a spec mayn't have replaced: a written division by zero, constants that aren't
    finite, whole exponents beyond 2**31."""
    if term.op in ("/", "//", "%") and _constant(term.args[1]) == 0:
        term = call(term.op, term.args[0], number("2"))
    if term.op == "**":
        exponent = _constant(term.args[1])
        if exponent is not None and 2.0**31 <= abs(exponent) <= 2.0**53 and exponent == int(exponent):
            term = call("**", term.args[0], number("2"))
    if term.op not in ("number", "name") and not names_in(term):
        value = _constant(term)
        if value is not None and not math.isfinite(value):
            return number("1")
    return term


def _constant(term: Term) -> float | None:
    """A constant's value, 0.0 if it may be that, infinite if it may be that; None if ``term`` has names."""
    if names_in(term):
        return None
    value = constant_value(term)
    if value is None:
        return math.nan
    if math.isinf(value.low) or math.isinf(value.high):
        return math.inf
    return 0.0 if value.has_zero else value.low
