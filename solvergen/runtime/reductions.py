"""Reductions of elements to one float64, in the one order that all backends have.

Terms are float64 and come in chunks of 4,096. In a chunk, term i belongs to lane i % 256; a lane begins at
+0.0 and takes its terms one after the other; then the upper half of the lanes is added to the lower, until
one is left: the chunk's total. The totals are terms again, until one value is left. That of one chunk is not
reduced again, and that of no terms is +0.0. ``max_abs`` takes the larger of two in place of their sum.

Lanes whose terms end early are filled up with +0.0 here, which changes nothing: no lane is ever -0.0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime import scalars
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import ReductionKind

CHUNK_TERMS = 4096
"""Terms that one total is made of."""

LANES = 256
"""Running values side by side in a chunk."""

BLOCK = 32 * CHUNK_TERMS
"""Terms that are formed at a time, so that they stay in the cache."""


def _wide(x: HostArray) -> HostArray:
    wide: HostArray = x.astype(np.float64, copy=False)
    return wide


def _product(x: HostArray, y: HostArray) -> HostArray:
    result: HostArray = _wide(x) * _wide(y)
    return result


def _square(x: HostArray) -> HostArray:
    wide = _wide(x)
    result: HostArray = wide * wide
    return result


def _magnitude(x: HostArray) -> HostArray:
    result: HostArray = np.absolute(_wide(x))
    return result


def _is_nonzero(x: HostArray) -> HostArray:
    result: HostArray = (x != 0).astype(np.float64)
    return result


TERMS: dict[ReductionKind, Callable[..., HostArray]] = {
    "sum": _wide,
    "mean": _wide,
    "dot": _product,
    "norm1": _magnitude,
    "norm2": _square,
    "max_abs": _magnitude,
    "count_nonzero": _is_nonzero,
}
"""The terms that each kind forms of elements, in float64."""


@dataclass(frozen=True)
class OverAll:
    """What a tensor has to say to a reduction over all tensors.

    ``index`` is the place of the reduction in the program, ``total`` this tensor's, ``size`` its elements.
    """

    kind: ReductionKind
    index: int
    total: float
    size: int


def over_all(kind: ReductionKind, index: int, *elements: Any) -> OverAll:
    """For references that are generators: ``norm = yield over_all("norm2", 0, x)``."""
    return OverAll(kind, index, total_of(kind, *elements), int(np.size(elements[0])))


def sum_of(x: Any) -> float:
    """The sum."""
    return total_of("sum", x)


def mean(x: Any) -> float:
    """The sum by the number of elements; NaN where there are none."""
    return finished("mean", total_of("mean", x), float(np.size(x)))


def dot(x: Any, y: Any) -> float:
    """The sum of products."""
    return total_of("dot", x, y)


def norm2(x: Any) -> float:
    """The root of the sum of squares."""
    return finished("norm2", total_of("norm2", x), float(np.size(x)))


def norm1(x: Any) -> float:
    """The sum of absolute values."""
    return total_of("norm1", x)


def max_abs(x: Any) -> float:
    """The largest absolute value, 0 where there are no elements; NaN if there is one."""
    return total_of("max_abs", x)


def count_nonzero(x: Any) -> float:
    """How many elements aren't zero. NaN isn't."""
    return total_of("count_nonzero", x)


def finished(kind: ReductionKind, total: float, size: float) -> float:
    """What a reduction's total stands for: the root of ``norm2``'s, ``mean``'s by the number of elements."""
    if kind == "norm2":
        return scalars.sqrt(total)
    return scalars.divide(total, size) if kind == "mean" else total


def total_of(kind: ReductionKind, *elements: Any) -> float:
    """The total of the terms that elements of float32 or float64 give."""
    flat = [np.asarray(x).reshape(-1) for x in elements]
    form, largest = TERMS[kind], kind == "max_abs"
    totals = np.zeros(-(-flat[0].size // CHUNK_TERMS))
    with np.errstate(all="ignore"):
        for start in range(0, flat[0].size, BLOCK):
            terms = form(*(x[start : start + BLOCK] for x in flat))
            made = _chunk_totals(terms, largest)
            first = start // CHUNK_TERMS
            totals[first : first + made.size] = made
    return _reduced(totals, largest)


def total_of_terms(kind: ReductionKind, terms: HostArray) -> float:
    """The total of terms that are float64 already: those of tensors, by their position, for one over all."""
    with np.errstate(all="ignore"):
        if terms.size == 1:
            return float(terms[0])
        return _reduced(_chunk_totals(terms, kind == "max_abs"), kind == "max_abs")


def _reduced(totals: HostArray, largest: bool) -> float:
    with np.errstate(all="ignore"):
        while totals.size > 1:
            totals = _chunk_totals(totals, largest)
    return float(totals[0]) if totals.size else 0.0


def _chunk_totals(terms: HostArray, largest: bool) -> HostArray:
    combine = _larger if largest else np.add
    count = -(-terms.size // CHUNK_TERMS)
    if terms.size != count * CHUNK_TERMS:
        filled = np.zeros(count * CHUNK_TERMS)
        filled[: terms.size] = terms
        terms = filled
    rows = terms.reshape(count, CHUNK_TERMS // LANES, LANES)
    lanes = np.zeros((count, LANES))
    for row in range(rows.shape[1]):
        lanes = combine(lanes, rows[:, row])
    half = LANES
    while half > 1:
        half //= 2
        lanes = combine(lanes[:, :half], lanes[:, half : 2 * half])
    result: HostArray = lanes[:, 0]
    return result


def _larger(a: HostArray, b: HostArray) -> HostArray:
    """``a`` where it is larger or NaN, else ``b``."""
    return np.where((a > b) | (a != a), a, b)
