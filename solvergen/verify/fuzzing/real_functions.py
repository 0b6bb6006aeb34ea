"""``exp log tanh cbrt`` and general powers: the true value by mpmath, and the stated accuracy around it.

docs/language.md states it: exp and log within 1 unit of the last place, tanh within 3 and cbrt within 1 in
float64, both within 2 in float32; a general power within ``2 + 2*abs(y*log(x))`` units of 2**-53, relative.
Special values are exact, by its tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath

from solvergen.verify.fuzzing.rounding import DOUBLE, Format, nearest
from solvergen.verify.fuzzing.spans import NAN, UNKNOWN, Span, Value, between, exactly, negative

_PRECISION = 240
_LEAST = 2.0**-1074
_FAR = 1200  # binary exponents beyond which a double is 0 or infinite


def exponential(a: Value, form: Format = DOUBLE) -> Value:
    """``exp(a)`` of elements of ``form``, or of scalars."""
    return _increasing(a, mpmath.exp, {math.inf: math.inf, -math.inf: 0.0, 0.0: 1.0}, 1, form, lowest=0.0)


def logarithm(a: Value, form: Format = DOUBLE) -> Value:
    """``log(a)`` of elements of ``form``, or of scalars."""
    if a is not UNKNOWN and a.low < 0:
        return NAN if a.high < 0 else UNKNOWN
    return _increasing(a, mpmath.log, {math.inf: math.inf, 0.0: -math.inf}, 1, form)


def hyperbolic_tangent(a: Value, form: Format = DOUBLE) -> Value:
    """``tanh(a)`` of elements of ``form``, or of scalars."""
    if a is not UNKNOWN and a.low == a.high == 0:
        return a
    special = {math.inf: 1.0, -math.inf: -1.0, 0.0: 0.0}
    return _increasing(a, mpmath.tanh, special, 3 if form is DOUBLE else 2, form)


def cube_root(a: Value, form: Format = DOUBLE) -> Value:
    """``cbrt(a)`` of elements of ``form``, or of scalars."""
    if a is not UNKNOWN and a.low == a.high == 0:
        return a
    special = {math.inf: math.inf, -math.inf: -math.inf, 0.0: 0.0}
    return _increasing(a, _real_cube_root, special, 1 if form is DOUBLE else 2, form)


def _real_cube_root(x: Any) -> Any:
    return mpmath.sign(x) * mpmath.cbrt(abs(x))


def _increasing(
    a: Value,
    function: Callable[[Any], Any],
    special: dict[float, float],
    units: int,
    form: Format,
    lowest: float = -math.inf,
) -> Value:
    """An increasing function of which ``units`` of the last place of ``form`` are known."""
    if a is UNKNOWN or a.is_nan:
        return a
    ends = []
    for x, outwards in ((a.low, -units), (a.high, units)):
        if x in special:
            ends.append(special[x])
        else:
            with mpmath.workprec(_PRECISION):
                true = function(mpmath.mpf(max(-1e5, min(x, 1e5)) if function is mpmath.exp else x))
                ends.append(max(lowest, _rounded(true + outwards * _unit(true, form), form)))
    return between(*ends)


def _unit(true: Any, form: Format) -> Any:
    """A unit of the last place in ``form`` about ``true``; of the wider side at a power of two."""
    if true == 0:
        return mpmath.ldexp(1, form.least)
    exponent = mpmath.frexp(true)[1]  # abs(true) is below 2**exponent
    return mpmath.ldexp(1, max(min(exponent, form.top + 1) - form.precision, form.least))


def _rounded(x: Any, form: Format = DOUBLE) -> float:
    if x == 0:
        return 0.0
    exponent = int(mpmath.frexp(x)[1])
    if exponent > _FAR:
        return math.inf if x > 0 else -math.inf
    if exponent < -_FAR:
        return 0.0
    mantissa, shift = int(x.man), int(x.exp)
    found = nearest(mantissa << max(shift, 0), 1 << max(-shift, 0), form)
    return -found if x < 0 < found else found


def power(x: Value, y: Value) -> Value:
    """``x**y`` in float64 as a general power: IEEE's ``pow`` in its special values."""
    if x is UNKNOWN or y is UNKNOWN:
        return UNKNOWN
    if y.low == y.high == 0 or x.low == x.high == 1:
        return exactly(1.0)
    if x.is_nan or y.is_nan:
        # Where the other might be one of the exceptions above, nothing is certain.
        other = x if y.is_nan else y
        excepted = 1.0 if y.is_nan else 0.0
        return NAN if other.is_nan or not other.low <= excepted <= other.high else UNKNOWN
    if x.is_exact and y.is_exact:
        found = _special_power(x.low, y.low)
        if found is not None:
            return exactly(found)
    if x.has_zero or not all(math.isfinite(end) for end in (x.low, x.high, y.low, y.high)):
        return UNKNOWN
    if x.low > 0:
        return _positive_power(x, y)
    if not y.is_exact:
        return UNKNOWN
    if y.low != math.floor(y.low):
        return NAN
    size = _positive_power(Span(-x.high, -x.low), y)
    return negative(size) if y.low % 2 else size


def _special_power(x: float, y: float) -> float | None:
    """What IEEE's ``pow`` gives at zeros and infinities; None where the value is an ordinary one."""
    odd = math.isfinite(y) and y == math.floor(y) and y % 2 == 1
    sign = -1.0 if odd and math.copysign(1, x) < 0 else 1.0
    if x == 0:
        return sign * (0.0 if y > 0 else math.inf)
    if math.isinf(y):
        if abs(x) == 1:
            return 1.0
        return math.inf if (abs(x) > 1) == (y > 0) else 0.0
    if math.isinf(x):
        return sign * (math.inf if y > 0 else 0.0)
    return None


def _positive_power(x: Span, y: Span) -> Value:
    """Of ``x > 0``, all finite. It is monotone in each, so its extremes lie in corners."""
    ends: list[float] = []
    with mpmath.workprec(_PRECISION):
        for base in {x.low, x.high}:
            for exponent in {y.low, y.high}:
                size = mpmath.mpf(exponent) * mpmath.log(mpmath.mpf(base))
                true = mpmath.exp(max(-1e5, min(size, 1e5)))
                error = true * (2 + 2 * abs(size)) * mpmath.ldexp(1, -53) + mpmath.mpf(_LEAST)
                ends += [max(0.0, _rounded(true - error)), _rounded(true + error)]
    return between(min(ends), max(ends))
