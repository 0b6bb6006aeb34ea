"""Arrays as text, with every bit: hexadecimal floats, and NaNs that aren't the usual one by their bits.

0x1p+0 -0x0p+0 0x1.8p-149 inf nan nan:7fa00001
"""

from __future__ import annotations

import re

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.verify.bits import hexadecimal
from solvergen.verify.dtypes import LAYOUTS

_NUMBER = re.compile(r"-?(?:0x[01](?:\.[0-9a-f]{1,13})?p[+-][0-9]{1,4}|inf)", re.ASCII)
_NAN = re.compile(r"nan(?::([0-9a-f]{4,16}))?", re.ASCII)


def number_text(value: float) -> str:
    """A float64 that isn't NaN, or NaN of whatever payload, as one word."""
    return hexadecimal(value)


def number_from(word: str) -> float:
    """The float64 that ``number_text`` wrote. Raises ValueError for anything else."""
    if word == "nan":
        return float("nan")
    if _NUMBER.fullmatch(word) is None:
        raise ValueError(f"{word!r:.40} is not a hexadecimal float")
    try:
        return float.fromhex(word)
    except OverflowError:
        raise ValueError(f"{word!r:.40} is too large for a float") from None


def array_text(array: HostArray) -> str:
    """The elements of ``array`` (float32, float64, bfloat16 or float16), in C order, a blank between them."""
    flat = np.ascontiguousarray(array).reshape(-1)
    layout = LAYOUTS[flat.dtype.name]
    bits = flat.view(f"u{flat.itemsize}").tolist()
    usual = _usual_nan(flat.dtype.name)
    with np.errstate(all="ignore"):
        values = flat.astype(np.float64).tolist()
    words = []
    for value, pattern in zip(values, bits, strict=True):
        if value == value:
            words.append(number_text(value))
        else:
            words.append("nan" if pattern == usual else f"nan:{pattern:0{layout.bits // 4}x}")
    return " ".join(words)


def array_from(dtype: str, shape: tuple[int, ...], text: str) -> HostArray:
    """The array that ``array_text`` wrote.

    Raises ValueError if ``dtype`` isn't one of the storage types, ``text`` doesn't hold as many elements as
    ``shape`` says, or one of them isn't a number of this type.
    """
    if dtype not in LAYOUTS:
        raise ValueError(f"{dtype!r:.40} is not a storage type; there are {', '.join(LAYOUTS)}")
    words = text.split()
    size = 1
    for length in shape:
        size *= length
    if len(words) != size:
        raise ValueError(f"{len(words)} elements where the shape {shape} has {size}")
    values = np.zeros(size, np.float64)
    patterns: dict[int, int] = {}
    for index, word in enumerate(words):
        if (nan := _NAN.fullmatch(word)) is None:
            values[index] = number_from(word)
        else:
            patterns[index] = _nan_bits(dtype, nan[1])
    with np.errstate(all="ignore"):
        array: HostArray = values.astype(numpy_dtype(dtype))
        inexact = np.flatnonzero(array.astype(np.float64) != values)
    if inexact.size:
        raise ValueError(f"{words[int(inexact[0])]} is not a {dtype}")
    bits = array.view(f"u{array.itemsize}")
    for index, pattern in patterns.items():
        bits[index] = pattern
    return array.reshape(shape)


def _usual_nan(dtype: str) -> int:
    """The bits of the quiet NaN without sign and payload."""
    layout = LAYOUTS[dtype]
    return layout.top << layout.mantissa | 1 << (layout.mantissa - 1)


def _nan_bits(dtype: str, digits: str | None) -> int:
    if digits is None:
        return _usual_nan(dtype)
    layout, pattern = LAYOUTS[dtype], int(digits, 16)
    is_nan = pattern >> layout.mantissa & layout.top == layout.top and pattern & ((1 << layout.mantissa) - 1)
    if len(digits) != layout.bits // 4 or not is_nan:
        raise ValueError(f"nan:{digits} is not a NaN of {dtype}")
    return pattern
