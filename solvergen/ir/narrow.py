"""``exp log tanh cbrt`` of float32 elements: sequences of exactly rounded float32 operations.

Vectors have twice as many lanes of float32 as of float64, and most GPUs compute it 32 or 64 times as
fast. So these functions have a second body, of a shorter series, whose every operation and constant is of
float32. There is no branch and, but for tanh, no division; special values come out of the arithmetic or are
selected. A general power has none: exp(y*log(x)) needs more digits of the logarithm than float32 has.

Accuracy, measured over all 2**32 arguments in units of the last place: exp 0.90, log 0.88, tanh 1.33 and
cbrt 1.14. What is promised is 1, 1, 2 and 2. exp, log and tanh are also monotone, as far as neighbours show;
cbrt falls back by a unit at one argument in two hundred.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence


def to_float32(value: float) -> float:
    """The float32 nearest to ``value``, ties to even; infinite beyond the largest."""
    try:
        (nearest,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(nearest)


def _series(variable: str, coefficients: Sequence[float]) -> str:
    """Horner's form of sum(c[i] * variable**i)."""
    text = repr(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        text = f"({coefficient!r} + {variable}*{text})"
    return text


# ln 2 in two parts; the first has 16 bits, so that its products with whole numbers up to 255 are exact.
_LN2_HIGH, _LN2_LOW = 0.69314575, 1.4286068e-06
# Added and taken away again, it leaves the nearest whole number: 1.5 * 2**23.
_WHOLE = 12582912.0
_LARGEST, _LEAST_NORMAL = 3.4028235e38, 1.1754944e-38

# The polynomials of their degree with the least relative error in the function, each coefficient rounded to
# float32 before the next was determined. Of (exp(r) - 1 - r)/r**2 for abs(r) <= ln(2)/2: 3.7e-9 in exp(r).
_EXP_TERMS = (0.5, 0.16666535, 0.04166724, 0.008367433, 0.0013863419)
# Of (log(1 + f) - f + f**2/2)/f**3 for 1 + f from sqrt(0.5) to sqrt(2): 6.3e-9.
_LOG_TERMS = (
    *(0.3333333, -0.25000855, 0.20001274, -0.16622056),
    *(0.14199741, -0.13171895, 0.12782137, -0.07627794),
)
# Of (tanh(x) - x)/x**3 in x**2 for abs(x) <= 0.625: 5.1e-9.
_TANH_TERMS = (-0.33333278, 0.13331311, -0.05372793, 0.020599252, -0.005659944)
NARROW_BIT_FUNCTIONS = ("bits_as_number", "number_with_bits", "leading_half")
"""What only these bodies use: the bits of a positive number read as a whole one, which is rounded to float32;
the number whose bits are a whole one, of which the fraction is cut; a number without its last 12 bits."""

NARROW: dict[str, str] = {
    # Above 89 the result is infinite, below -104 zero. NaN passes: whatever power of two is made of it,
    # the product is NaN. r is rounded, so the sum takes its two parts again. The scale comes in two halves,
    # as one power of two would be subnormal or infinite before the result is.
    "exp": f"""
        bounded = where(x < -104, -104, where(x > 89, 89, x))
        k = (bounded*1.442695 + {_WHOLE}) - {_WHOLE}
        high = bounded - k*{_LN2_HIGH}
        low = k*{_LN2_LOW}
        r = high - low
        series = 1 + (high - (low - r*r*{_series("r", _EXP_TERMS)}))
        half_k = (k*0.5 + {_WHOLE}) - {_WHOLE}
        result = series*power_of_two(half_k)*power_of_two(k - half_k)
        """,
    # Below is -inf at zero and under it, and -inf less itself is the NaN of negative numbers.
    "log": f"""
        tiny = x < {_LEAST_NORMAL}
        y = where(tiny, x*{2.0**23}, x)
        s = significand(y)
        large = s > 1.4142135
        e = exponent(y) - where(tiny, 23, 0) + where(large, 1, 0)
        f = where(large, 0.5*s, s) - 1
        square = f*f
        rest = f*square*{_series("f", _LOG_TERMS)}
        finite = e*{_LN2_HIGH} + (f - (0.5*square - (rest + e*{_LN2_LOW})))
        positive = where(x > {_LARGEST}, x, finite)
        below = (x - 1)*3e38*3e38
        result = where(x > 0, positive, where(x < 0, below - below, below))
        """,
    # Where exp is infinite, the quotient is 0 and the result 1.
    "tanh": f"""
        size = abs(x)
        square = x*x
        small = size + size*square*{_series("square", _TANH_TERMS)}
        positive = where(size < 0.625, small, 1 - 2/(exp(2*size) + 1))
        result = where(x > 0, positive, where(x < 0, -positive, x))
        """,
    # The bits of a number are nearly its logarithm, so that taking a third of them away from a constant
    # gives the inverse root to 5 %, exponent and all; a step of third order gives it to 3e-4. Cut to half its
    # digits its square is exact. What is wrong with it (wrong = 1 - size*inverse**3) corrects the root, which
    # keeps the sign and the special values of x: root = rough*(1 - wrong)**(-2/3). Nothing is subnormal.
    "cbrt": f"""
        tiny = abs(x) < {2.0**-100}
        y = where(tiny, x*{2.0**24}, x)
        size = abs(y)
        guess = number_with_bits(1.4197e9 - bits_as_number(size)*0.33333334)
        off = 1 - size*guess*guess*guess
        inverse = leading_half(guess + guess*off*(0.33333334 + off*0.22222222))
        rough = y*(inverse*inverse)
        wrong = 1 - abs(rough*inverse)
        root = rough + rough*wrong*(0.6666667 + wrong*0.5555556)
        result = where(tiny, root*{2.0**-8}, root)
        """,
}
"""The bodies by name, in the notation of ``library``: x is the parameter, functions are those of float32."""
