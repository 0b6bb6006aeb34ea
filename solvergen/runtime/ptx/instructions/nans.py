"""Which NaN an instruction gives.

The ISA leaves the payload of single-precision NaNs open ("Floating-Point Instructions"); devices give
0x7fffffff whatever the operands, so that is what they are here. Double precision keeps payloads: the
result is the first operand that is a NaN, made quiet, and where an operation makes a NaN of its own it is
the device's, with the sign bit set. Nothing is left to NumPy, whose choice between two NaNs may depend on
where in an array they stand.
"""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray

CANONICAL = {
    16: np.uint16(0x7FFF).view(np.float16),
    32: np.uint32(0x7FFFFFFF).view(np.float32),
    64: np.uint64(0xFFF8000000000000).view(np.float64),
}
"""The NaN that the instructions of a width make."""

_QUIET64 = np.uint64(1 << 51)


def settled(result: HostArray, *operands: HostArray) -> HostArray:
    """``result`` with the NaNs that the device would give, written in place.

    A NaN counts as the largest element, and to look for that is NumPy's cheapest reduction.
    """
    if not result.size:
        return result
    largest = result[result.argmax()]
    if largest == largest:
        return result
    nan = np.isnan(result)
    np.copyto(result, CANONICAL[8 * result.itemsize], where=nan)
    if result.itemsize == 8:
        for operand in reversed(operands):
            quiet = (operand.view(np.uint64) | _QUIET64).view(np.float64)
            np.copyto(result, quiet, where=nan & np.isnan(operand))
    return result
