"""Expressions as the fuzzer has them: drawn, written as text, read back and evaluated.

Nothing here, nor in ``reading`` and ``meaning``, comes from the compile half, so that a mistake in its
parser, its types or its arithmetic isn't repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
ARITHMETIC = ("+", "-", "*", "/", "//", "%", "**")
FUNCTIONS = {
    "sqrt": 1, "abs": 1, "sign": 1, "floor": 1, "exp": 1, "log": 1, "tanh": 1, "cbrt": 1,
    "min": 2, "max": 2, "where": 3, "clip": 3,
}  # fmt: skip
"""The functions of the language and how many arguments each takes, as docs/language.md lists them."""

REDUCTIONS = {"sum": 1, "mean": 1, "dot": 2, "norm2": 1, "norm1": 1, "max_abs": 1, "count_nonzero": 1}
"""Its reductions, and how many arguments each takes beside ``all``."""

OVER_ALL = "all"
"""The last argument of a reduction over all tensors."""

VIEWS = (("rows", "columns", "matrices"), ("leading",), ("trailing",), ("blocks",))
"""Words for lines that one rule may use together."""

LINES = {
    "rows": "rows",
    "columns": "columns",
    "matrices": "matrices",
    "leading": "rows",
    "trailing": "columns",
    "blocks": "rows",
}
"""The last arguments of reductions along lines, and shapes of states of lines; what each is of the view's
matrices."""

AXES = "@ndim"
"""The name under which the number of the parameter's axes, ``ndim(param)``, is kept."""

GRADIENT = "gradient"
"""The operation of the statement that evaluates the gradient again; what it gives is assigned to ``grad``."""

WIDER = {
    "": frozenset({""}),
    "matrices": frozenset({"", "matrices"}),
    "rows": frozenset({"", "matrices", "rows"}),
    "columns": frozenset({"", "matrices", "columns"}),
}
"""Of which lines, or of the tensor, a value may be that meets one of these and leaves it so."""

CONDITIONS = frozenset({*COMPARISONS, "and", "or", "not"})
"""Operations that give a condition."""


@dataclass(frozen=True, slots=True)
class Term:
    """An operation on ``args``. ``op`` is "number" or "name", and ``text`` how it is spelt; or "neg", an
    operator, "and", "or", "not", a function or a reduction. ``a if c else b`` is ``where``. The ``text`` of a
    reduction is OVER_ALL if it is over all tensors, and along lines one of LINES."""

    op: str
    args: tuple[Term, ...] = ()
    text: str = ""


def number(text: str) -> Term:
    """A literal, as it is spelt."""
    return Term("number", text=text)


def name(text: str) -> Term:
    """A name."""
    return Term("name", text=text)


def call(op: str, *args: Term) -> Term:
    """An operation."""
    return Term(op, args)


def walk(term: Term) -> Iterator[Term]:
    """``term`` and everything in it, operands first."""
    for arg in term.args:
        yield from walk(arg)
    yield term


def names_in(term: Term) -> set[str]:
    """Every name that ``term`` reads."""
    return {part.text for part in walk(term) if part.op == "name"}
