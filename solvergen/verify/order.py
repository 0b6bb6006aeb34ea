"""The order in which reductions combine their terms, written as docs/language.md says it, one by one.

For the rule called directly and for the evaluation of a spec's equations: whatever the terms are, doubles or
bounds, they are combined here and not by the runtime's own code, so that a mistake of that one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Term = TypeVar("Term")

CHUNK = 4096
LANES = 256


def total(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The one value that is left of ``terms``: each chunk is combined, then their totals in the same way."""
    totals = _totals(terms, combine, zero)
    while len(totals) > 1:
        totals = _totals(totals, combine, zero)
    return totals[0] if totals else zero


def total_over_all(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The same of tensors' totals: that of a single tensor is left as it is."""
    return terms[0] if len(terms) == 1 else total(terms, combine, zero)


def add(a: float, b: float) -> float:
    """``a + b`` in float64."""
    return a + b


def larger(a: float, b: float) -> float:
    """``a`` if it is larger or NaN, else ``b``: what ``max_abs`` combines by."""
    return a if a > b or a != a else b


def _totals(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> list[Term]:
    """A total for each chunk."""
    return [_chunk(terms[at : at + CHUNK], combine, zero) for at in range(0, len(terms), CHUNK)]


def _chunk(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    lanes = [zero] * LANES
    for index, term in enumerate(terms):
        lanes[index % LANES] = combine(lanes[index % LANES], term)
    half = LANES // 2
    while half:
        lanes = [combine(lanes[lane], lanes[lane + half]) for lane in range(half)]
        half //= 2
    return lanes[0]
