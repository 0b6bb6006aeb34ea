"""Bits, not closeness: when two arrays are the same, where they first differ, and by how much.

Two values are the same if their bits are, signed zeros distinguished, or if both are NaN, whatever
the payload.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray


def _integers(array: HostArray) -> HostArray:
    """The bits of floating-point ``array``, flat, as unsigned integers."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.dtype(f"u{flat.dtype.itemsize}"))


def _is_nan(array: HostArray) -> HostArray:
    """NaN or not, flat. Works on types that NumPy has from elsewhere, such as bfloat16."""
    flat = np.ascontiguousarray(array).reshape(-1)
    with np.errstate(invalid="ignore"):  # a signalling NaN is one, too
        nan: HostArray = np.not_equal(flat, flat)
    return nan


def differing(expected: HostArray, found: HostArray) -> HostArray:
    """Flat positions at which two arrays of one shape and dtype differ in their bits.

    Raises ``ValueError`` if shapes or dtypes aren't equal: then there is nothing to compare.
    """
    if expected.dtype != found.dtype or expected.shape != found.shape:
        raise ValueError(
            f"can't compare {expected.dtype} {expected.shape} with {found.dtype} {found.shape} bit by bit"
        )
    unequal = _integers(expected) != _integers(found)
    if not unequal.any():
        return np.flatnonzero(unequal)
    return np.flatnonzero(unequal & ~(_is_nan(expected) & _is_nan(found)))


def same_bits(expected: HostArray, found: HostArray) -> bool:
    """Whether two arrays of one shape and dtype are the same, bit by bit (any NaN is like any other)."""
    return differing(expected, found).size == 0


def ulp_distance(expected: Any, found: Any) -> int | None:
    """How many representable values apart two numbers of one floating-point dtype are.

    0 and -0 are 0 apart (though not the same), infinity is one beyond the largest finite number.
    None if one of them is NaN.
    """
    pair = np.array([expected, found])
    if _is_nan(pair).any():
        return None
    sign = 1 << (8 * pair.dtype.itemsize - 1)
    ordered = [int(bits) if bits < sign else sign - int(bits) for bits in _integers(pair).tolist()]
    return abs(ordered[0] - ordered[1])


def show(value: Any) -> str:
    """A number in decimal (shortest that reads back in its own type) and as a hexadecimal float."""
    number = float(value)
    decimal = repr(number) if isinstance(value, float) else str(value)
    return f"{decimal}  {hexadecimal(value)}" if np.isfinite(number) else decimal


def hexadecimal(value: Any) -> str:
    """A number as a hexadecimal float that ``float.fromhex`` reads, without trailing zeros."""
    number = float(value)
    return re.sub(r"\.?0*p", "p", number.hex()) if np.isfinite(number) else str(number)
