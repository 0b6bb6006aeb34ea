"""Reductions along lines in Python floats, by loops that follow the definition word for word."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tests.support.reductions import add, by_loops, larger

Combine = Callable[[float, float], float]


def by_rule_for_tensors(terms: Sequence[float], combine: Combine) -> float:
    """The total of totals: one is itself."""
    return terms[0] if len(terms) == 1 else by_loops(terms, combine)


def row_total(terms: Sequence[float], combine: Combine) -> float:
    """The total of a row's terms."""
    tiles = []
    for start in range(0, len(terms), 256):
        lanes = list(terms[start : start + 256])
        lanes += [0.0] * (256 - len(lanes))
        s = 128
        while s:
            for i in range(s):
                lanes[i] = combine(lanes[i], lanes[i + s])
            s //= 2
        tiles.append(lanes[0])
    return by_rule_for_tensors(tiles, combine)


def column_total(terms: Sequence[float], combine: Combine) -> float:
    """The total of a column's terms."""
    tiles = []
    for start in range(0, len(terms), 64):
        total = 0.0
        for term in terms[start : start + 64]:
            total = combine(total, term)
        tiles.append(total)
    return by_rule_for_tensors(tiles, combine)


def matrix_total(rows: Sequence[Sequence[float]], combine: Combine) -> float:
    """The total of a matrix's terms."""
    return by_rule_for_tensors([row_total(row, combine) for row in rows], combine)


def totals(rank: str, matrices: Sequence[Sequence[Sequence[float]]], columns: int, kind: str) -> list[float]:
    """The totals along the lines of a rank of terms [matrix][row][column], flat."""
    combine = larger if kind == "max_abs" else add
    found = []
    for matrix in matrices:
        if rank == "rows":
            found += [row_total(row, combine) for row in matrix]
        elif rank == "columns":
            found += [column_total([row[c] for row in matrix], combine) for c in range(columns)]
        else:
            found.append(matrix_total(matrix, combine))
    return found
