"""What all reductions have in common: sizes, and how two values or many lanes become one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray

CHUNK_TERMS = 4096
"""Terms that one total is made of."""

LANES = 256
"""Running values side by side in a chunk."""

Combine = Callable[[Any, Any], HostArray]


def _larger(a: Any, b: Any) -> HostArray:
    """``a`` where it is larger or NaN, else ``b``."""
    result: HostArray = np.where((a > b) | (a != a), a, b)
    return result


def combining(largest: bool) -> Combine:
    """What makes one value of two: the larger, or the sum."""
    return _larger if largest else np.add


def halved(lanes: HostArray, combine: Combine) -> HostArray:
    """Lanes [many, a power of two] combined, the upper half with the lower until one is left: [many]."""
    half = lanes.shape[1]
    while half > 1:
        half //= 2
        lanes = combine(lanes[:, :half], lanes[:, half : 2 * half])
    result: HostArray = lanes[:, 0]
    return result
