"""Constants by IEEE's rules, and ranges that never claim too much."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.frontend.ranges import Range, range_of_hyperparameter, truth, value_range
from solvergen.ir.evaluate import constant, divide, evaluate, floor, integer_power
from solvergen.ir.nodes import Compare, names_in
from solvergen.spec.model import Hyperparameter
from tests.unit.frontend.strategies import numeric
from tests.unit.frontend.support import value

NAN, INF = math.nan, math.inf


def bits(x: float) -> str:
    return "nan" if x != x else x.hex()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1/49*49", 0.9999999999999999),
        ("0.9 - 0.8 - 0.1", -2.7755575615628914e-17),
        ("0.1 + 0.2", 0.30000000000000004),
        ("-7//2", -4.0),
        ("-7 % 3", 2.0),
        ("7 % -3", -2.0),
        ("7.5//2", 3.0),
        ("2**40", 2.0**40),
        ("10**20", 1e20),
        ("2**-1", 0.5),
        ("0**0", 1.0),
        ("(-2)**3", -8.0),
        ("4**0.5", 2.0),
        ("2**0.5", 1.414213562373095),  # a general power, as the language defines it, and not sqrt
        ("9**9**9", INF),
        ("(-8)**(1/3)", NAN),
        ("0**-1", INF),
        ("1/0", INF),
        ("-1/0", -INF),
        ("1/-0", -INF),
        ("0/0", NAN),
        ("5 % 0", NAN),
        ("sqrt(-1)", NAN),
        ("sqrt(-0.0)", -0.0),
        ("log(0)", -INF),
        ("log(-1)", NAN),
        ("exp(1000)", INF),
        ("tanh(0.0)", 0.0),
        ("cbrt(64)", 4.0),
        ("cbrt(-27)", -3.0),
        ("cbrt(-0.0)", -0.0),
        ("cbrt(2)", 2 ** (1 / 3)),
        ("cbrt(1/0)", INF),
        ("max(-0.0, 0)", 0.0),
        ("max(0, -0.0)", -0.0),
        ("min(0, -0.0)", -0.0),
        ("sign(-0.0)", -0.0),
        ("sign(-3)", -1.0),
        ("abs(-0.0)", 0.0),
        ("floor(-0.5)", -1.0),
        ("floor(0.5)", 0.0),
        ("floor(-0.0)", -0.0),
        ("clip(5, 0, 1)", 1.0),
        ("clip(-5, 0, 1)", 0.0),
        ("where(1 < 2, 3, 4)", 3.0),
        ("where(not 1 < 2, 3, 4)", 4.0),
        ("1 < 2 < 3", 1.0),
        ("1 < 2 and 2 < 1", 0.0),
        ("1 > 2 or 2 > 1", 1.0),
        ("1e-300*1e-300", 0.0),
    ],
)
def test_constants(text, expected):
    assert bits(constant(value(text))) == bits(expected)


def test_names_have_no_constant_value():
    assert constant(value("lr*0")) is None
    assert evaluate(value("lr*2"), {"lr": 0.5}) == 1.0


@given(st.floats(), st.floats())
def test_division_is_that_of_ieee(a, b):
    with np.errstate(all="ignore"):
        assert bits(divide(a, b)) == bits(float(np.float64(a) / np.float64(b)))


@given(st.floats())
def test_floor_is_that_of_ieee(x):
    assert bits(floor(x)) == bits(float(np.floor(np.float64(x))))


@given(st.floats(-10, 10), st.integers(-60, 60))
def test_binary_powering_is_near_the_true_power(x, n):
    if x == 0 and n < 0:
        return
    got = integer_power(x, float(n))
    with np.errstate(all="ignore"):
        want = float(np.float64(x) ** n)
    if math.isfinite(want) and abs(want) > 1e-290:
        assert math.isclose(got, want, rel_tol=1e-13)


def test_binary_powering_is_the_stated_sequence():
    x = 1.1
    x2 = x * x
    x4 = x2 * x2
    assert integer_power(x, 7) == (x * x2) * x4
    assert integer_power(x, -7) == 1 / ((x * x2) * x4)


def test_ranges_of_hyperparameters():
    assert range_of_hyperparameter(Hyperparameter("h", 0.5, min=0.0, below=1.0)) == Range(
        0.0, math.nextafter(1, 0)
    )
    assert range_of_hyperparameter(Hyperparameter("h", 0.5, above=0.0)).low == 5e-324
    assert range_of_hyperparameter(Hyperparameter("h", 2.0, above=0.0, below=9.5, integer=True)) == Range(
        1.0, 9.0
    )
    assert range_of_hyperparameter(Hyperparameter("h", 0.5)) == Range(
        -1.7976931348623157e308, 1.7976931348623157e308
    )


BOX = {
    "lr": Range(0.0, 2.0),
    "beta1": Range(0.0, math.nextafter(1, 0)),
    "t": Range(1.0, INF),
    "E": Range(-3.0, -1.0),
}
inside = st.fixed_dictionaries(
    {
        "lr": st.floats(0, 2),
        "beta1": st.floats(0, 1, exclude_max=True),
        "t": st.integers(1, 2**40).map(float),
        "E": st.floats(-3, -1),
        "param": st.floats(),
        "grad": st.floats(),
        "m": st.floats(),
        "x0": st.floats(),
    }
)


@settings(max_examples=500)
@given(numeric, inside)
def test_a_value_lies_in_its_range(expression, values):
    got = evaluate(expression, values)
    claimed = value_range(expression, BOX)
    if got != got:
        assert claimed.nan, names_in(expression)
    else:
        assert claimed.low <= got <= claimed.high


@settings(max_examples=300)
@given(st.sampled_from(("<", "<=", ">", ">=", "==", "!=")), numeric, numeric, inside)
def test_a_claimed_outcome_is_the_outcome(op, left, right, values):
    condition = Compare(op, left, right)
    claimed = truth(condition, BOX)
    if claimed is not None:
        assert bool(evaluate(condition, values)) == claimed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("lr < 0", False),
        ("lr >= 0", True),
        ("lr > 0", None),
        ("beta1 < 1", True),
        ("1 - beta1 > 0", True),
        ("E < 0 and lr >= 0", True),
        ("E > 0 and m > 0", False),
        ("E > 0 or m > 0", None),
        ("not E > 0", True),
        ("E*E >= 1", True),
        ("1/E < 0", True),
        ("t >= 1", True),
        ("t == 0", False),
        ("min(lr, E) < 0", True),
        ("max(lr, E) >= 0", True),
        ("where(lr >= 0, E, 5) < 0", True),
        ("m == m", None),
        ("abs(E) >= 1", True),
    ],
)
def test_outcomes(text, expected):
    assert truth(value(text), BOX) is expected
