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
from solvergen.runtime.line_reductions import Over, Source, line_totals
from solvergen.runtime.ordering import CHUNK_TERMS, LANES, combining, halved

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


# Of what follows, ``over`` says what there is one result for: a Python float for the tensor, or an array of
# float64 for its rows, columns or matrices. ``source`` says what the terms belong to: the elements, or lines.
# Arrays are then [matrices, rows, columns].


def sum_of(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The sum."""
    return _reduced_over("sum", over, source, x)


def mean(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The sum by the number of terms; NaN where there are none."""
    return _reduced_over("mean", over, source, x)


def dot(x: Any, y: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The sum of products."""
    return _reduced_over("dot", over, source, x, y)


def norm2(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The root of the sum of squares."""
    return _reduced_over("norm2", over, source, x)


def norm1(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The sum of absolute values."""
    return _reduced_over("norm1", over, source, x)


def max_abs(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """The largest absolute value, 0 where there are no terms; NaN if there is one."""
    return _reduced_over("max_abs", over, source, x)


def count_nonzero(x: Any, over: Over = "tensor", source: Source = "elements") -> Any:
    """How many aren't zero. NaN isn't."""
    return _reduced_over("count_nonzero", over, source, x)


def _reduced_over(kind: ReductionKind, over: Over, source: Source, *operands: Any) -> Any:
    if over == "tensor" and source == "elements":
        return finished(kind, total_of(kind, *operands), float(np.size(operands[0])))
    with np.errstate(all="ignore"):
        terms = TERMS[kind](*np.broadcast_arrays(*operands))
        if over == "tensor":
            return finished(kind, total_of_terms(kind, terms.reshape(-1)), float(terms.size))
        totals = line_totals(over, terms, source, kind == "max_abs")
        if kind == "norm2":
            return np.sqrt(totals)
        return totals / (terms.size / totals.size if totals.size else 1.0) if kind == "mean" else totals


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
    combine = combining(largest)
    count = -(-terms.size // CHUNK_TERMS)
    if terms.size != count * CHUNK_TERMS:
        filled = np.zeros(count * CHUNK_TERMS)
        filled[: terms.size] = terms
        terms = filled
    rows = terms.reshape(count, CHUNK_TERMS // LANES, LANES)
    lanes = np.zeros((count, LANES))
    for row in range(rows.shape[1]):
        lanes = combine(lanes, rows[:, row])
    return halved(lanes, combine)
