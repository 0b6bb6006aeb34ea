"""The functions of the language over NumPy arrays and Python floats, for the NumPy references.

An *element* is an array of float32 or float64 (of any shape; a NumPy scalar, which 0-d arrays turn
into, is one too); a *scalar* is a Python float. Scalars are computed in float64 by
``solvergen.runtime.scalars``; a scalar that meets an element is rounded once to the element's type,
which is what NumPy does to Python floats of itself. A few of NumPy's functions differ from the
language (``np.maximum`` of zeros, ``np.sign`` of -0.0 and of NaN, ``np.where`` of two Python floats),
so every function is defined here once, for each mix of elements and scalars.

Callers silence NumPy's floating point warnings (``np.errstate(all="ignore")``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from solvergen.runtime import scalars
from solvergen.runtime.closures import gradient
from solvergen.runtime.definition import Rank
from solvergen.runtime.lines import lines_in
from solvergen.runtime.reductions import (
    count_nonzero,
    dot,
    max_abs,
    mean,
    norm1,
    norm2,
    over_all,
    sum_of,
)

__all__ = [
    "Condition",
    "Value",
    "absolute",
    "clip",
    "count_nonzero",
    "divide",
    "dot",
    "floor",
    "floor_divide",
    "gradient",
    "max_abs",
    "maximum",
    "mean",
    "minimum",
    "norm1",
    "norm2",
    "over_all",
    "power",
    "remainder",
    "sign",
    "spread",
    "sqrt",
    "sum_of",
    "where",
]

Value = Any
"""An array of float32 or float64, or a Python float."""

Condition = Any
"""An array of bool, or a bool."""


def _is_scalar(value: Value) -> bool:
    # By exact type: np.float64 is a subclass of float, but an element.
    return type(value) is float or type(value) is int


def _like(element: Value, value: Value) -> Value:
    """``value`` as an element of the type that ``element`` has."""
    return element.dtype.type(value) if _is_scalar(value) else value


def spread(x: Value, like: Value, rank: Rank | None = None) -> Value:
    """``x`` as many times as ``like`` has elements, where it is one number for all of them.

    With a rank: in float64, once for each of these lines of matrices that have the elements ``like``.
    """
    if rank is None:
        return np.broadcast_to(x, np.shape(like))
    return np.broadcast_to(np.asarray(x, np.float64), lines_in(rank, np.shape(like)))


def sqrt(x: Value) -> Value:
    """The square root, correctly rounded; NaN below zero."""
    return scalars.sqrt(x) if _is_scalar(x) else np.sqrt(x)


def absolute(x: Value) -> Value:
    """``x`` with its sign bit cleared."""
    return scalars.absolute(x) if _is_scalar(x) else np.absolute(x)


def sign(x: Value) -> Value:
    """1 above zero, -1 below zero, ``x`` itself where it is zero or NaN."""
    if _is_scalar(x):
        return scalars.sign(x)
    return where(x > 0, 1.0, where(x < 0, -1.0, x))


def where(condition: Condition, a: Value, b: Value) -> Value:
    """``a`` where the condition holds, else ``b``.

    An element if the condition or one of the values is one. (Of two scalars under a condition on
    elements it is float64, so generated code rounds it: ``real(where(...))``.)
    """
    if not _is_scalar(a):
        b = _like(a, b)
    elif not _is_scalar(b):
        a = _like(b, a)
    if isinstance(condition, (bool, np.bool_)):
        return a if condition else b
    return np.where(condition, a, b)


def minimum(a: Value, b: Value) -> Value:
    """``a`` where it is smaller or NaN, else ``b``."""
    if _is_scalar(a) and _is_scalar(b):
        return scalars.minimum(a, b)
    return where((a < b) | (a != a), a, b)


def maximum(a: Value, b: Value) -> Value:
    """``a`` where it is larger or NaN, else ``b``."""
    if _is_scalar(a) and _is_scalar(b):
        return scalars.maximum(a, b)
    return where((a > b) | (a != a), a, b)


def clip(x: Value, low: Value, high: Value) -> Value:
    """``minimum(maximum(x, low), high)``."""
    return minimum(maximum(x, low), high)


def floor(x: Value) -> Value:
    """The largest whole number not above ``x``; zeros keep their sign."""
    return scalars.floor(x) if _is_scalar(x) else np.floor(x)


def divide(a: Value, b: Value) -> Value:
    """``a/b`` as IEEE 754 has it, never an exception."""
    return scalars.divide(a, b) if _is_scalar(a) and _is_scalar(b) else a / b


def floor_divide(a: Value, b: Value) -> Value:
    """``floor(a/b)``."""
    return floor(divide(a, b))


def remainder(a: Value, b: Value) -> Value:
    """``a - floor(a/b)*b``."""
    return a - floor(divide(a, b)) * b


def power(x: Value, n: float) -> Value:
    """``x**n`` for a whole scalar ``n`` by binary powering: the same products for elements and scalars.

    The exponent of an element is a constant, so it is finite.
    """
    if _is_scalar(x):
        return scalars.power(x, n)
    count = int(n)
    if count < 0:
        return 1.0 / power(x, float(-count))
    if count == 0:
        return np.ones_like(x)
    factor, result = x, None
    while True:
        if count & 1:
            result = factor if result is None else result * factor
        count >>= 1
        if not count:
            return result
        factor = factor * factor
