"""IEEE arithmetic of Python floats, for the host programs of generated packages.

Python raises where IEEE 754 has a value (``1/0``, ``sqrt(-1)``); these functions return that value and
never raise. ``+``, ``-``, ``*`` and comparisons of Python floats are IEEE already. Results are floats
(or bools), never NumPy's scalar types, which would not be rounded to the element's type when they meet
one.
"""

from __future__ import annotations

import math

_WHOLE_FROM = 2.0**52  # from here on every float64 is a whole number


def divide(a: float, b: float) -> float:
    """``a/b``; signed infinity or NaN where ``b`` is zero."""
    if b != 0.0:
        return a / b
    if a != a or a == 0.0:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def sqrt(x: float) -> float:
    """The square root, correctly rounded; NaN below zero, -0.0 of -0.0."""
    return math.sqrt(x) if x >= 0.0 else math.nan


def absolute(x: float) -> float:
    """``x`` with its sign bit cleared."""
    return math.fabs(x)


def sign(x: float) -> float:
    """1 above zero, -1 below zero, ``x`` itself where it is zero or NaN."""
    if x > 0.0:
        return 1.0
    return -1.0 if x < 0.0 else float(x)


def minimum(a: float, b: float) -> float:
    """``a`` if it is smaller or NaN, else ``b``."""
    return float(a if a < b or a != a else b)


def maximum(a: float, b: float) -> float:
    """``a`` if it is larger or NaN, else ``b``."""
    return float(a if a > b or a != a else b)


def where(condition: bool, a: float, b: float) -> float:
    """``a`` where the condition holds, else ``b``."""
    return a if condition else b


def clip(x: float, low: float, high: float) -> float:
    """``minimum(maximum(x, low), high)``."""
    return minimum(maximum(x, low), high)


def floor(x: float) -> float:
    """The largest whole number not above ``x``; zeros keep their sign, infinities and NaN stay."""
    if -_WHOLE_FROM < x < _WHOLE_FROM and x != 0.0:
        return float(math.floor(x))
    return float(x)


def floor_divide(a: float, b: float) -> float:
    """``floor(a/b)``."""
    return floor(divide(a, b))


def remainder(a: float, b: float) -> float:
    """``a - floor(a/b)*b``: the sign of ``b``, as in Python."""
    return a - floor(divide(a, b)) * b


def power(x: float, n: float) -> float:
    """``x**n`` for a whole number ``n`` by binary powering: the products that the language defines.

    A negative ``n`` is ``1/x**-n``. An infinite or NaN ``n`` gives what IEEE 754's ``pow`` does: 1 for
    ``x = 1``, and where ``n`` is infinite for ``x = -1``; otherwise the limit, or NaN.
    """
    if n - n != 0.0:
        return _power_of_no_number(x, n)
    count = int(n)
    if count < 0:
        return divide(1.0, power(x, -count))
    if count == 0:
        return 1.0
    factor = float(x)
    while not count & 1:
        factor = factor * factor
        count >>= 1
    result = factor
    count >>= 1
    while count:
        factor = factor * factor
        if count & 1:
            result = result * factor
        count >>= 1
    return result


def _power_of_no_number(x: float, n: float) -> float:
    if x == 1.0 or (x == -1.0 and n == n):
        return 1.0
    if x != x or n != n:
        return math.nan
    return math.inf if (math.fabs(x) > 1.0) == (n > 0.0) else 0.0
