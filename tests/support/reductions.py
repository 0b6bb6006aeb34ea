"""The reductions of the language in Python floats, by loops that follow the definition word for word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

KINDS = ("sum", "mean", "dot", "norm1", "norm2", "max_abs", "count_nonzero")


def add(a: float, b: float) -> float:
    """Addition."""
    return a + b


def larger(a: float, b: float) -> float:
    """``a`` if it is larger or NaN."""
    return a if a > b or a != a else b


def by_loops(terms: Sequence[float], combine: Callable[[float, float], float] = add) -> float:
    """The total of terms. One chunk's total isn't reduced again; no terms give 0."""
    if not terms:
        return 0.0
    while True:
        totals = []
        for start in range(0, len(terms), 4096):
            lanes = [0.0] * 256
            for i, term in enumerate(terms[start : start + 4096]):
                lanes[i % 256] = combine(lanes[i % 256], term)
            s = 128
            while s:
                for i in range(s):
                    lanes[i] = combine(lanes[i], lanes[i + s])
                s //= 2
            totals.append(lanes[0])
        if len(totals) == 1:
            return totals[0]
        terms = totals


def terms_of(kind: str, x: Sequence[float], y: Sequence[float] = ()) -> list[float]:
    """The terms that elements give."""
    return {
        "sum": lambda: list(x),
        "mean": lambda: list(x),
        "dot": lambda: [a * b for a, b in zip(x, y, strict=True)],
        "norm1": lambda: [abs(a) for a in x],
        "norm2": lambda: [a * a for a in x],
        "max_abs": lambda: [abs(a) for a in x],
        "count_nonzero": lambda: [1.0 if a != 0 else 0.0 for a in x],
    }[kind]()


def total(kind: str, x: Sequence[float], y: Sequence[float] = ()) -> float:
    """The total of the terms of one tensor."""
    return by_loops(terms_of(kind, x, y), larger if kind == "max_abs" else add)


def finish(kind: str, value: float, size: int) -> float:
    """What a total stands for."""
    if kind == "norm2":
        return math.sqrt(value)
    if kind == "mean":
        return value / size if size else math.nan
    return value


def reduction(kind: str, x: Sequence[float], y: Sequence[float] = ()) -> float:
    """A reduction over one tensor."""
    return finish(kind, total(kind, x, y), len(x))


def reduction_over_all(kind: str, totals: Sequence[float], size: int) -> float:
    """A reduction over all tensors, of the total of each position, 0.0 where it doesn't take part."""
    if len(totals) == 1:
        return finish(kind, totals[0], size)
    return finish(kind, by_loops(totals, larger if kind == "max_abs" else add), size)
