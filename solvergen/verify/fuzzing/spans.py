"""Arithmetic on what is known of a computed value: the doubles between which it lies.

The bound is derived, operation by operation. ``+ - * / sqrt`` and comparisons are correctly rounded, and
rounding is monotone: the result lies between the rounded results at the ends, so what is known exactly
stays known to the bit. ``exp log tanh cbrt`` and general powers lie within their stated accuracy of the true
value (``real_functions``). A value of which nothing can be said is None, UNKNOWN; so is a condition that
the bounds can't decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvergen.verify.fuzzing.rounding import Format, nearest, rounded, square_root


@dataclass(frozen=True, slots=True)
class Span:
    """A number from ``low`` to ``high``; NaN if both are. The sign of a zero counts only where both ends
    are the same bits."""

    low: float
    high: float

    @property
    def is_nan(self) -> bool:
        """Is it NaN for certain?"""
        return self.low != self.low

    @property
    def is_exact(self) -> bool:
        """Is it known to the bit (NaNs are all the same)?"""
        return self.is_nan or _key(self.low) == _key(self.high)

    @property
    def has_zero(self) -> bool:
        """May it be zero?"""
        return self.low <= 0 <= self.high


Value = Span | None
Truth = bool | None
NAN = Span(math.nan, math.nan)
UNKNOWN = None


def exactly(x: float) -> Span:
    """The value ``x``."""
    return Span(x, x)


def between(low: float, high: float) -> Span:
    """Any number from ``low`` to ``high``; where these aren't the same bits, a zero among them may have
    either sign."""
    if _key(low) == _key(high):
        return Span(low, high)
    return Span(-0.0 if low == 0 else low, 0.0 if high == 0 else high)


def _key(x: float) -> tuple[float, float]:
    return x, math.copysign(1.0, x)


def _hull(ends: list[float]) -> Value:
    """From the least to the largest; UNKNOWN if only some are NaN."""
    nans = sum(x != x for x in ends)
    if nans:
        return NAN if nans == len(ends) else UNKNOWN
    return between(min(ends, key=_key), max(ends, key=_key))


def either(a: Value, b: Value) -> Value:
    """``a`` or ``b``, which of them isn't known: something is said only where they differ by no more than the
    sign of a zero, since whatever lies between two others would pass for known."""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN if a.is_nan and b.is_nan else UNKNOWN
    return _hull([a.low, b.low, a.high, b.high]) if a == b else UNKNOWN


def to_format(a: Value, form: Format) -> Value:
    """``a`` rounded once."""
    return a if a is UNKNOWN or a.is_nan else between(rounded(a.low, form), rounded(a.high, form))


def negative(a: Value) -> Value:
    """``-a``"""
    return a if a is UNKNOWN or a.is_nan else between(-a.high, -a.low)


def add(a: Value, b: Value, form: Format) -> Value:
    """``a + b``"""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN
    crossing = math.inf in (a.high, -a.low) and math.inf in (b.high, -b.low)
    if crossing and not (a.is_exact and b.is_exact):
        return UNKNOWN
    return _hull([_add(a.low, b.low, form), _add(a.high, b.high, form)])


def _add(x: float, y: float, form: Format) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
    total = p * s + r * q
    if total == 0:
        # The sum of two zeros keeps a common sign; any other exact zero is positive.
        return -0.0 if math.copysign(1, x) < 0 and math.copysign(1, y) < 0 else 0.0
    return nearest(total, q * s, form)


def subtract(a: Value, b: Value, form: Format) -> Value:
    """``a - b``"""
    return add(a, negative(b), form)


def multiply(a: Value, b: Value, form: Format) -> Value:
    """``a * b``"""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN
    for one, other in ((a, b), (b, a)):
        if one.has_zero and math.inf in (other.high, -other.low) and not (a.is_exact and b.is_exact):
            return UNKNOWN
    return _hull([_multiply(x, y, form) for x in (a.low, a.high) for y in (b.low, b.high)])


def _multiply(x: float, y: float, form: Format) -> float:
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y
    (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
    return math.copysign(nearest(abs(p * r), q * s, form), math.copysign(1, x) * math.copysign(1, y))


def divide(a: Value, b: Value, form: Format) -> Value:
    """``a / b``"""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN
    if b.has_zero and not (b.is_exact and (a.is_exact or not a.has_zero)):
        return UNKNOWN
    infinite = math.inf in (a.high, -a.low) and math.inf in (b.high, -b.low)
    if infinite and not (a.is_exact and b.is_exact):
        return UNKNOWN
    return _hull([_divide(x, y, form) for x in (a.low, a.high) for y in (b.low, b.high)])


def _divide(x: float, y: float, form: Format) -> float:
    if x != x or y != y or (x == 0 and y == 0) or (math.isinf(x) and math.isinf(y)):
        return math.nan
    sign = math.copysign(1, x) * math.copysign(1, y)
    if y == 0 or math.isinf(x):
        return math.copysign(math.inf, sign)
    if math.isinf(y):
        return math.copysign(0.0, sign)
    (p, q), (r, s) = x.as_integer_ratio(), y.as_integer_ratio()
    return math.copysign(nearest(abs(p * s), q * abs(r), form), sign)


def floor(a: Value) -> Value:
    """The largest whole number not above ``a``; a zero keeps its sign."""
    if a is UNKNOWN or a.is_nan:
        return a
    return between(_floor(a.low), _floor(a.high))


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) and x != 0 else x


def floored_quotient(a: Value, b: Value, form: Format) -> Value:
    """``a // b``"""
    return floor(divide(a, b, form))


def remainder(a: Value, b: Value, form: Format) -> Value:
    """``a % b``"""
    return subtract(a, multiply(floored_quotient(a, b, form), b, form), form)


def root(a: Value, form: Format) -> Value:
    """``sqrt(a)``"""
    if a is UNKNOWN or a.is_nan:
        return a
    if a.low < 0:
        return NAN if a.high < 0 else UNKNOWN
    return _hull([x if x == 0 or math.isinf(x) else square_root(x, form) for x in (a.low, a.high)])


def absolute(a: Value) -> Value:
    """``abs(a)``"""
    if a is UNKNOWN or a.is_nan:
        return a
    ends = [abs(a.low), abs(a.high)]
    return _hull([*ends, 0.0] if a.has_zero and not a.is_exact else ends)


def sign(a: Value) -> Value:
    """1, -1, or ``a`` itself where that is a zero or NaN."""
    if a is UNKNOWN or a.is_nan:
        return a
    return between(*(1.0 if x > 0 else -1.0 if x < 0 else x for x in (a.low, a.high)))


def least(a: Value, b: Value) -> Value:
    """``min(a, b)``: the first if it is smaller or NaN, else the second."""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN
    return _extreme(a, b, [x if x < y else y for x, y in ((a.low, b.low), (a.high, b.high))])


def largest(a: Value, b: Value) -> Value:
    """``max(a, b)``: the first if it is larger or NaN, else the second."""
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a.is_nan or b.is_nan:
        return NAN
    return _extreme(a, b, [x if x > y else y for x, y in ((a.low, b.low), (a.high, b.high))])


def _extreme(a: Span, b: Span, ends: list[float]) -> Value:
    """Which of two zeros is taken hangs on bits that are known only where both numbers are."""
    return _hull(
        ends if a.is_exact and b.is_exact else [x for end in ends for x in (end, -end if end == 0 else end)]
    )


def whole_power(a: Value, n: int, form: Format) -> Value:
    """Binary powering from the lowest bit, as docs/language.md has it under "Powers"."""
    if n == 0:
        return exactly(1.0)
    result: Value = UNKNOWN
    begun = False
    square, bits = a, abs(n)
    while bits:
        if bits & 1:
            result = multiply(result, square, form) if begun else square
            begun = True
        bits >>= 1
        if bits:
            square = multiply(square, square, form)
    return divide(exactly(1.0), result, form) if n < 0 else result


def compare(op: str, a: Value, b: Value) -> Truth:
    """Whether ``a op b`` holds."""
    if a is UNKNOWN or b is UNKNOWN:
        return None
    if a.is_nan or b.is_nan:
        return op == "!="
    if op in ("==", "!="):
        if a.high < b.low or b.high < a.low:
            return op == "!="
        return op == "==" if a.low == a.high == b.low == b.high else None
    if op in (">", ">="):
        a, b = b, a
    if op in ("<", ">"):
        return True if a.high < b.low else False if a.low >= b.high else None
    return True if a.high <= b.low else False if a.low > b.high else None


def contains(a: Span, x: float) -> bool:
    """Can a value that is known to be ``a`` be ``x``? To the bit where it is exact."""
    if a.is_nan or x != x:
        return a.is_nan and x != x
    return _key(a.low) == _key(x) if a.is_exact else a.low <= x <= a.high
