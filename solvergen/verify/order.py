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
TILE_ROWS = 64
TILE_COLUMNS = 256


def total(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The one value that is left of ``terms``: each chunk is combined, then their totals in the same way."""
    totals = _totals(terms, combine, zero)
    while len(totals) > 1:
        totals = _totals(totals, combine, zero)
    return totals[0] if totals else zero


def total_over_all(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The same of tensors' totals: that of a single tensor is left as it is."""
    return terms[0] if len(terms) == 1 else total(terms, combine, zero)


def row_total(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The total of a row of elements: in a tile its terms are lanes; the tiles' results are terms again."""
    tiles = [
        _halved([*part, *[zero] * (TILE_COLUMNS - len(part))], combine)
        for at in range(0, len(terms), TILE_COLUMNS)
        for part in [terms[at : at + TILE_COLUMNS]]
    ]
    return total_over_all(tiles, combine, zero)


def column_total(terms: Sequence[Term], combine: Callable[[Term, Term], Term], zero: Term) -> Term:
    """The total of a column of elements: in each tile from the top; the tiles' results are terms again."""
    tiles = []
    for at in range(0, len(terms), TILE_ROWS):
        value = zero
        for term in terms[at : at + TILE_ROWS]:
            value = combine(value, term)
        tiles.append(value)
    return total_over_all(tiles, combine, zero)


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
    return _halved(lanes, combine)


def _halved(lanes: list[Term], combine: Callable[[Term, Term], Term]) -> Term:
    half = len(lanes) // 2
    while half:
        lanes = [combine(lanes[lane], lanes[lane + half]) for lane in range(half)]
        half //= 2
    return lanes[0]
