"""Float64 work behind ``exp log tanh cbrt`` and general powers: widening, and looking at bits.

Of float32 elements only powers come here; ``narrow_math`` has the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

quiet = np.errstate(all="ignore")
"""Decorates functions whose infinities and NaNs are results, not accidents."""


def widened(*arguments: Any) -> tuple[Any, ...]:
    """The arguments in float64, and behind them the function that rounds a result to their common type.

    Python floats are scalars of float64 already, and their result is a Python float; beside an
    array they are rounded to its type first, as everywhere.
    """
    # By exact type: np.float64, which a 0-d array turns into, is a subclass of float, but an element.
    arrays = [a for a in arguments if type(a) is not float and type(a) is not int]
    if not arrays:
        return (*(np.float64(a) for a in arguments), float)
    real = np.result_type(*arrays)
    wide = tuple(np.asarray(a, dtype=real).astype(np.float64) for a in arguments)
    narrowed: Callable[[Any], Any] = lambda result: np.asarray(result).astype(real)  # noqa: E731
    return (*wide, narrowed)


def power_of_two(k: Any) -> Any:
    """2**k for whole k from -1022 to 1023, as float64."""
    return ((np.asarray(k).astype(np.int64) + 1023) << 52).view(np.float64)


def exponent(x: Any) -> Any:
    """The unbiased exponent of a normal float64."""
    return (((np.asarray(x, dtype=np.float64).view(np.int64) >> 52) & 0x7FF) - 1023).astype(np.float64)


def significand(x: Any) -> Any:
    """The significand of a normal float64, from 1 up to below 2."""
    bits = np.asarray(x, dtype=np.float64).view(np.int64)
    return ((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000).view(np.float64)
