"""Every function, for every mix of elements and scalars, against its definition one element at a time."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from solvergen.runtime import reference_math as rm
from tests.support.bits import assert_same_bits

VALUES = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.1,
    -0.3,
    2.5,
    -2.5,
    7.0,
    1e-45,
    -1e-45,
    1e38,
    -1e38,
    math.inf,
    -math.inf,
    math.nan,
]
REALS = [np.float32, np.float64]


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


DEFINITIONS = {
    "minimum": lambda a, b: a if a < b or a != a else b,
    "maximum": lambda a, b: a if a > b or a != a else b,
    "divide": lambda a, b: a / b,
    "floor_divide": lambda a, b: np.floor(a / b),
    "remainder": lambda a, b: a - np.floor(a / b) * b,
}

ONE = {
    "sqrt": np.sqrt,
    "absolute": lambda x: type(x)(math.copysign(x, 1.0)),
    "sign": lambda x: type(x)(1) if x > 0 else type(x)(-1) if x < 0 else x,
    "floor": np.floor,
}


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", ONE)
def test_one_argument(name, real):
    x = np.array(VALUES, real)
    result = getattr(rm, name)(x)
    assert_same_bits(result, np.array([ONE[name](v) for v in x], real))
    for value in VALUES:
        scalar = getattr(rm, name)(value)
        assert type(scalar) is float
        assert_same_bits(np.float64(scalar), np.float64(ONE[name](np.float64(value))))


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("name", DEFINITIONS)
def test_two_arguments_in_every_mix(name, real):
    function, definition = getattr(rm, name), DEFINITIONS[name]
    pairs = np.array(list(product(VALUES, VALUES)), real)
    expected = np.array([definition(a, b) for a, b in pairs], real)
    assert_same_bits(function(pairs[:, 0].copy(), pairs[:, 1].copy()), expected)
    x = np.array(VALUES, real)
    for value in [*VALUES, 0.1 + 1e-12]:  # the last is rounded to a float32 when it meets one
        met = real(value)
        assert_same_bits(function(x, value), np.array([definition(v, met) for v in x], real))
        assert_same_bits(function(value, x), np.array([definition(met, v) for v in x], real))
    for a, b in product(VALUES, VALUES):
        scalar = function(a, b)
        assert type(scalar) is float
        assert_same_bits(np.float64(scalar), np.float64(definition(np.float64(a), np.float64(b))))


@pytest.mark.parametrize("real", REALS)
def test_clip_in_every_mix(real):
    x = np.array(VALUES, real)
    for low, high in product([-1.0, 0.0, -0.0, math.nan, 3.0], [1.0, 0.0, math.nan, -3.0]):
        at_least, at_most = real(low), real(high)
        raised = [DEFINITIONS["maximum"](v, at_least) for v in x]
        expected = np.array([DEFINITIONS["minimum"](v, at_most) for v in raised], real)
        assert_same_bits(rm.clip(x, low, high), expected)
        assert_same_bits(rm.clip(x, np.full_like(x, low), high), expected)
        assert_same_bits(rm.clip(x, low, np.full_like(x, high)), expected)


@pytest.mark.parametrize("real", REALS)
def test_where_in_every_mix(real):
    x, y = np.array(VALUES, real), np.array(VALUES[::-1], real)
    condition = x < y
    expected = np.array([a if c else b for c, a, b in zip(condition, x, y, strict=True)], real)
    assert_same_bits(rm.where(condition, x, y), expected)
    for value in (0.1, 1e-60, 1e300, math.nan, -0.0):
        filled = np.full_like(x, value)
        assert_same_bits(rm.where(condition, value, y), np.where(condition, filled, y))
        assert_same_bits(rm.where(condition, x, value), np.where(condition, x, filled))
    for scalar_condition in (True, False, np.True_, np.False_):
        assert_same_bits(rm.where(scalar_condition, x, y), x if scalar_condition else y)
        assert rm.where(scalar_condition, 0.1, 0.2) == (0.1 if scalar_condition else 0.2)


def test_where_under_a_scalar_condition_gives_an_element_if_one_value_is_one():
    # Were it a Python float, a product with another scalar would be taken in float64.
    x = np.array([3.0], np.float32)
    for result in (rm.where(True, 0.1, x), rm.where(False, x, 0.1)):
        assert result.dtype == np.float32
        assert_same_bits(result * 0.3, np.float32(0.1) * np.float32(0.3))


def test_scalars_under_a_condition_on_elements_come_out_in_full():
    result = rm.where(np.array([True, False]), 0.1, 0.2)
    assert_same_bits(np.float32(result), np.array([0.1, 0.2], np.float32))


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 7, 8, 31, 64, -1, -2, -7])
def test_power_of_elements_and_scalars_are_the_same_products(real, n):
    def defined(x):
        if n == 0:
            return real(1)
        count, b, r = abs(n), x, None
        while count:
            if count & 1:
                r = b if r is None else r * b
            count >>= 1
            if count:
                b = b * b
        return r if n > 0 else real(1) / r

    x = np.array(VALUES, real)
    assert_same_bits(rm.power(x, float(n)), np.array([defined(v) for v in x], real))
    if real is np.float64:
        for value in VALUES:
            scalar = rm.power(value, float(n))
            assert type(scalar) is float
            assert_same_bits(np.float64(scalar), defined(np.float64(value)))


@pytest.mark.parametrize("real", REALS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3)])
def test_shapes_and_types_are_kept(real, shape):
    x = np.full(shape, 2.0, real)
    for result in (
        rm.sqrt(x), rm.absolute(x), rm.sign(x), rm.floor(x), rm.power(x, 3.0), rm.power(x, 0.0),
        rm.power(x, -2.0), rm.minimum(x, 1.0), rm.maximum(1.0, x), rm.clip(x, 0.0, 1.0), rm.divide(1.0, x),
        rm.remainder(x, 3.0),
        rm.where(x > 1.0, x, 1.0), rm.where(x > 1.0, 1.0, x),
    ):  # fmt: skip
        assert result.dtype == real
        assert result.shape == shape


def test_scalar_arguments_never_become_numpy_scalars():
    for result in (
        rm.sqrt(2.0),
        rm.minimum(1.0, 2.0),
        rm.power(0.9, 3.0),
        rm.divide(1.0, 3.0),
        rm.floor(1.5),
        rm.sign(2.0),
        rm.where(True, 1.0, 2.0),
        rm.clip(3.0, 0.0, 1.0),
        rm.remainder(5.0, 3.0),
    ):
        assert type(result) is float
