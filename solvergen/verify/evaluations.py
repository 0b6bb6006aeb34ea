"""The gradients of rules that evaluate them again within a step: what stands for a function of the user's."""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import compute_dtype


def gradient_at(number: int, drawn: HostArray, param: HostArray) -> HostArray:
    """The gradient of evaluation ``number``, from 1, at a parameter: the first as it was drawn, and later
    ones with every bit of the parameter in them, so that it matters where they are taken."""
    if number == 1:
        return drawn
    real = compute_dtype(param.dtype.name)
    with np.errstate(all="ignore"):
        there = param.astype(real) + number * drawn.astype(real)
        gradient: HostArray = np.asarray(there, real).astype(drawn.dtype)
    return gradient
