"""The order of reductions, as the language says it: one term after the other, in a loop that is easy to read."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

CHUNK = 4096
LANES = 256

Combine = Callable[[float, float], float]


def added(a: float, b: float) -> float:
    """The next value of a sum."""
    return a + b


def larger(a: float, b: float) -> float:
    """The next value of a largest magnitude; a NaN stays."""
    return a if a > b or math.isnan(a) else b


def chunk_value(terms: Sequence[float], combine: Combine = added) -> float:
    """The value of up to 4,096 terms."""
    lanes = [0.0] * LANES
    for i, term in enumerate(terms):
        lanes[i % LANES] = combine(lanes[i % LANES], term)
    half = LANES // 2
    while half:
        for i in range(half):
            lanes[i] = combine(lanes[i], lanes[i + half])
        half //= 2
    return lanes[0]


def total_of(terms: Iterable[float], combine: Combine = added) -> float:
    """The value of any number of terms."""
    values = [float(term) for term in terms]
    if not values:
        return 0.0
    while True:
        values = [chunk_value(values[i : i + CHUNK], combine) for i in range(0, len(values), CHUNK)]
        if len(values) == 1:
            return values[0]


def total_of_positions(totals: Sequence[float], combine: Combine = added) -> float:
    """The value of the totals of all tensors: of one it is the total itself."""
    return totals[0] if len(totals) == 1 else total_of(totals, combine)
