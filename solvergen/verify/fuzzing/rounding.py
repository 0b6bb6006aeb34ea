"""Exact rational numbers rounded once to a floating-point format, to nearest and ties to even."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: ``precision`` bits, all of them multiples of ``2**least``, up to below ``2**top``."""

    name: str
    precision: int
    least: int
    top: int


FORMATS = {
    form.name: form
    for form in (
        Format("float64", 53, -1074, 1024),
        Format("float32", 24, -149, 128),
        Format("bfloat16", 8, -133, 128),
        Format("float16", 11, -24, 16),
    )
}
DOUBLE = FORMATS["float64"]


def nearest(p: int, q: int, form: Format) -> float:
    """``p/q`` (``q > 0``, not both sharing anything in particular) in ``form``; a zero is positive."""
    if p == 0:
        return 0.0
    a = abs(p)
    exponent = a.bit_length() - q.bit_length()  # of the leading bit, or one more than that
    if (a << max(-exponent, 0)) < (q << max(exponent, 0)):
        exponent -= 1
    step = max(exponent - form.precision + 1, form.least)
    whole, rest = divmod(a << max(-step, 0), q << max(step, 0))
    twice = 2 * rest - (q << max(step, 0))
    if twice > 0 or (twice == 0 and whole & 1):
        whole += 1
    # ``whole`` has at most ``precision`` bits, or is the power of two after them: ldexp is exact.
    found = math.ldexp(whole, step) if whole.bit_length() + step <= form.top else math.inf
    return -found if p < 0 else found


def rounded(x: float, form: Format) -> float:
    """The double ``x`` in ``form``."""
    if form is DOUBLE or x == 0 or not math.isfinite(x):
        return x
    return nearest(*x.as_integer_ratio(), form)


def square_root(x: float, form: Format) -> float:
    """The square root of a finite ``x > 0``, rounded once."""
    p, q = x.as_integer_ratio()
    shift = 70 + q.bit_length()  # leaves 70 bits of the root or more, whatever x is
    root = math.isqrt((p << 2 * shift) // q)
    exact = root * root * q == p << 2 * shift
    return nearest(2 * root + (not exact), 1 << shift + 1, form)
