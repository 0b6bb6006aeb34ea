"""Float32 work behind ``exp log tanh cbrt`` of float32 elements: the same operations on bits as in C.

Nothing here may turn a float32 into a float64: numbers are Python's, which NumPy rounds to the type that
they meet, and integers are arrays of uint32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

float32 = np.float32
"""A number as a float32 where none is beside it."""

_WHOLE = 12582912.0  # 1.5 * 2**23: the last bits of _WHOLE + k are k
_EXPONENT = 0x4B000000  # 2**23 in bits: the last bits of 2**23 + n are n


def is_float32(x: Any) -> bool:
    """Whether ``x`` is of float32 elements: an array, or one of NumPy's numbers."""
    return getattr(x, "dtype", None) == np.float32


def _bits(x: Any) -> Any:
    return np.asarray(x, dtype=np.float32).view(np.uint32)


def power_of_two32(k: Any) -> Any:
    """2**k for whole k from -126 to 127, as float32; anything for another k."""
    return ((_bits(k + _WHOLE) << 23) + 0x3F800000).view(np.float32)


def exponent32(x: Any) -> Any:
    """The unbiased exponent of a normal float32, as float32."""
    return (((_bits(x) >> 23) & 0xFF) | _EXPONENT).view(np.float32) - 8388735.0


def significand32(x: Any) -> Any:
    """The significand of a normal float32, from 1 up to below 2."""
    return ((_bits(x) & 0x7FFFFF) | 0x3F800000).view(np.float32)


def bits_as_number32(x: Any) -> Any:
    """The bits of a positive float32, read as a whole number and rounded to float32."""
    return (_bits(x) & 0x7FFFFFFF).astype(np.float32)


def number_with_bits32(bits: Any) -> Any:
    """The positive float32 whose bits are the whole number ``bits``, of which the fraction is cut."""
    return np.asarray(bits, dtype=np.float32).astype(np.uint32).view(np.float32)


def leading_half32(x: Any) -> Any:
    """The first 12 bits of 24: a number whose square is exact."""
    return (_bits(x) & 0xFFFFF000).view(np.float32)
