"""bfloat16, which NumPy lacks: the upper half of a float32."""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.nans import CANONICAL

_NAN = np.uint16(0x7FFF)


def brain(bits: HostArray) -> HostArray:
    """bfloat16 as uint16 to float32, exactly; a NaN becomes the canonical one."""
    value = np.left_shift(bits.astype(np.uint32), np.uint32(16)).view(np.float32)
    result: HostArray = np.where(np.isnan(value), CANONICAL[32], value)
    return result


def to_brain(values: HostArray, rounding: str) -> HostArray:
    """float32 to bfloat16 as uint16, to nearest even (``rn``) or towards zero (``rz``); NaN is 0x7fff."""
    bits = values.view(np.uint32)
    if rounding == "rn":
        bits = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))
    upper = (bits >> np.uint32(16)).astype(np.uint16)
    result: HostArray = np.where(np.isnan(values), _NAN, upper)
    return result
