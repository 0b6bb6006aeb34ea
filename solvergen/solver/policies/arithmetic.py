"""The arithmetic of Caffe's rates: parameters in float, powers in double, the result in the net's type.

Each operation on two floats is done in double and rounded once, which is the same as doing it in float.
"""

from __future__ import annotations

import ctypes
import math
from typing import Literal

NetType = Literal["float32", "float64"]
"""The type of the net's blobs, Caffe's ``Dtype``: rates have it."""


def single(value: float) -> float:
    """``value`` rounded to float32; beyond its range an infinity."""
    return ctypes.c_float(value).value


def rounded(value: float, type_: NetType) -> float:
    """``value`` as a net of this type holds it."""
    return single(value) if type_ == "float32" else value


def power(base: float, exponent: float) -> float:
    """C's pow: infinite or NaN where Python raises."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = float(exponent).is_integer() and exponent % 2 == 1
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:
        return math.inf if base == 0.0 else math.nan


def exponential(value: float) -> float:
    """C's exp: infinite where Python raises."""
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf
