"""Scalars never raise, and have IEEE 754's bits. The oracle is NumPy's float64, or the definition itself."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.runtime import scalars
from tests.support.bits import assert_same_bits

SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.0, 3.0, 5e-324, -5e-324, 2.2250738585072014e-308,
    1e308, -1e308, 1.7976931348623157e308, math.inf, -math.inf, math.nan, 0.1, 0.9, 4503599627370495.5,
    -4503599627370495.5, 4503599627370496.0, 9007199254740993.0, 1e22,
]  # fmt: skip
numbers = st.one_of(st.sampled_from(SPECIAL), st.floats(width=64))


def as64(function, *arguments):
    with np.errstate(all="ignore"):
        return function(*(np.float64(a) for a in arguments))


def check(result, expected):
    assert type(result) is float
    assert_same_bits(np.float64(result), np.float64(expected))


@given(numbers, numbers)
def test_divide_is_ieee(a, b):
    check(scalars.divide(a, b), as64(operator.truediv, a, b))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (1.0, 0.0, math.inf),
        (1.0, -0.0, -math.inf),
        (-1.0, 0.0, -math.inf),
        (0.0, 0.0, math.nan),
        (math.nan, 0.0, math.nan),
        (math.inf, 0.0, math.inf),
        (math.inf, -0.0, -math.inf),
        (5e-324, 0.0, math.inf),
        (1e308, 1e-308, math.inf),
        (1, 0, math.inf),
    ],
)
def test_divide_by_zero(a, b, expected):
    check(scalars.divide(a, b), expected)


@given(numbers)
def test_sqrt_is_ieee(x):
    check(scalars.sqrt(x), as64(np.sqrt, x))


@given(numbers)
def test_floor_is_ieee(x):
    check(scalars.floor(x), as64(np.floor, x))


@given(numbers)
def test_absolute_clears_the_sign(x):
    check(scalars.absolute(x), as64(np.abs, x))
    assert math.copysign(1.0, scalars.absolute(x)) == 1.0


@given(numbers)
def test_sign(x):
    expected = 1.0 if x > 0 else -1.0 if x < 0 else x
    check(scalars.sign(x), expected)


@given(numbers, numbers)
def test_minimum_and_maximum_are_compare_and_select(a, b):
    check(scalars.minimum(a, b), a if a < b or math.isnan(a) else b)
    check(scalars.maximum(a, b), a if a > b or math.isnan(a) else b)


def test_minimum_and_maximum_of_equal_zeros_take_the_second():
    for function in (scalars.minimum, scalars.maximum):
        check(function(0.0, -0.0), -0.0)
        check(function(-0.0, 0.0), 0.0)


@given(numbers, numbers, numbers)
def test_clip(x, low, high):
    check(scalars.clip(x, low, high), scalars.minimum(scalars.maximum(x, low), high))


@given(numbers, numbers)
def test_floor_divide_and_remainder(a, b):
    with np.errstate(all="ignore"):
        quotient = np.floor(np.float64(a) / np.float64(b))
        rest = np.float64(a) - quotient * np.float64(b)
    check(scalars.floor_divide(a, b), quotient)
    check(scalars.remainder(a, b), rest)


@pytest.mark.parametrize(("a", "b", "expected"), [(-7.0, 2.0, 1.0), (7.0, -2.0, -1.0), (7.0, 2.0, 1.0)])
def test_remainder_has_the_sign_of_the_divisor(a, b, expected):
    check(scalars.remainder(a, b), expected)


def defined_power(x, n):
    """The language's definition, word for word, in NumPy's float64."""
    with np.errstate(all="ignore"):
        if n < 0:
            return np.float64(1.0) / defined_power(x, -n)
        r, b, first = np.float64(1.0), np.float64(x), True
        while n:
            if n & 1:
                r = b if first else r * b
                first = False
            n >>= 1
            if n:
                b = b * b
        return r


@given(numbers, st.integers(-300, 300))
def test_power_is_binary_powering(x, n):
    check(scalars.power(x, float(n)), defined_power(x, n))


@pytest.mark.parametrize("n", [2**24 + 1, 2**31 + 7, 2**53, 2**80, 10**300])
def test_power_of_huge_counts(n):
    for x in (0.999, 0.9999999999, 1.0, -1.0, 2.0, math.nan, 0.0):
        check(scalars.power(x, n), defined_power(x, n))


def test_power_zero_is_one_even_of_nan():
    check(scalars.power(math.nan, 0.0), 1.0)
    check(scalars.power(0.0, 0.0), 1.0)


def test_power_of_whole_literals_is_computed_in_float64():
    check(scalars.power(10, 25), defined_power(10.0, 25))


@pytest.mark.parametrize(
    ("x", "n", "expected"),
    [
        (0.5, math.inf, 0.0),
        (0.5, -math.inf, math.inf),
        (2.0, math.inf, math.inf),
        (2.0, -math.inf, 0.0),
        (-2.0, math.inf, math.inf),
        (1.0, math.inf, 1.0),
        (-1.0, -math.inf, 1.0),
        (1.0, math.nan, 1.0),
        (-1.0, math.nan, math.nan),
        (2.0, math.nan, math.nan),
        (math.nan, math.inf, math.nan),
        (0.0, -math.inf, math.inf),
        (math.inf, math.inf, math.inf),
    ],
)
def test_power_of_exponents_that_are_no_numbers(x, n, expected):
    check(scalars.power(x, n), expected)
    with np.errstate(all="ignore"):
        check(expected, np.float64(x) ** np.float64(n))


def test_where():
    assert scalars.where(True, 1.0, 2.0) == 1.0
    assert scalars.where(False, 1.0, 2.0) == 2.0
