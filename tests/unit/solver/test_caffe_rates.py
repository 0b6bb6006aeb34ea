"""Caffe's seven policies: every digit that real runs printed, and formulas in another arithmetic."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from decimal import Decimal, getcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.solver import SolverParameters, policy_of
from solvergen.solver.policies.arithmetic import power, single

_NUMBERS = {"base_lr": float, "gamma": float, "power": float, "stepsize": int, "max_iter": int}


def _printed() -> dict[tuple[tuple[str, Any], ...], list[tuple[int, str]]]:
    """What runs of Caffe printed: their parameters, and pairs of an iteration and a rate."""
    found = defaultdict(list)
    with (Path(__file__).parent / "printed_rates.tsv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            given = {name: kind(row[name]) for name, kind in _NUMBERS.items() if row[name]}
            key = tuple({**given, "lr_policy": row["lr_policy"]}.items())
            found[key].append((int(row["iteration"]), row["printed"]))
    return found


PRINTED = _printed()


def rates(params: SolverParameters, iterations: Any, type_: Any = "float32") -> list[float]:
    """The rates of these iterations, each used."""
    policy = policy_of(params, type_)
    state = policy.initial()
    found = []
    for iteration in iterations:
        rate, state = policy.rate(iteration, state)
        found.append(rate)
    return found


@pytest.mark.parametrize("given", PRINTED, ids=lambda given: "-".join(str(value) for _, value in given))
def test_every_digit_that_caffe_printed(given):
    lines = sorted(PRINTED[given])
    found = rates(SolverParameters(**dict(given)), [iteration for iteration, _ in lines])
    assert [f"{rate:.6g}" for rate in found] == [printed for _, printed in lines]


def test_there_are_that_many():
    assert sum(map(len, PRINTED.values())) == 277


def test_poly_shows_its_float_ratio():
    """In double the last displayed rate would be 1.25e-06."""
    params = SolverParameters(base_lr=0.01, lr_policy="poly", power=1, max_iter=160000)
    assert f"{rates(params, [159980])[0]:.6g}" == "1.24991e-06"
    assert f"{rates(params, [159980], 'float64')[0]:.6g}" == "1.25e-06"


def test_multistep_as_a_run_printed_it():
    steps = [80000, 110000, 140000, 160000, 170000, 180000]
    params = SolverParameters(base_lr=0.02, lr_policy="multistep", gamma=0.33, stepvalue=steps)
    found = rates(params, [0, *steps])
    printed = "0.02 0.0066 0.002178 0.00071874 0.000237184 7.82708e-05 2.58294e-05"
    assert " ".join(f"{rate:.6g}" for rate in found) == printed


def test_multistep_takes_one_step_an_iteration():
    """A state that is behind catches up, and two values that are the same take two iterations."""
    params = SolverParameters(base_lr=1, lr_policy="multistep", gamma=0.5, stepvalue=[5000, 7000, 8000])
    assert rates(params, [9000, 9001, 9002, 9003]) == [0.5, 0.25, 0.125, 0.125]
    twice = params.replaced(stepvalue=[3, 3])
    assert rates(twice, range(6)) == [1, 1, 1, 0.5, 0.25, 0.25]


def test_reading_a_rate_leaves_multistep_where_it_is():
    policy = policy_of(SolverParameters(base_lr=1, lr_policy="multistep", gamma=0.5, stepvalue=[1, 1]))
    state = policy.initial()
    for _ in range(5):
        assert policy.rate(1, state)[0] == 0.5
    assert policy.rate(1, policy.rate(1, state)[1])[0] == 0.25


def test_step_computes_its_step_anew():
    policy = policy_of(SolverParameters(base_lr=1, lr_policy="step", gamma=0.5, stepsize=10))
    assert policy.rate(25, {"current_step": 7}) == (0.25, {"current_step": 2})


def test_step_goes_on_beyond_what_a_float_counts():
    params = SolverParameters(
        base_lr=0.1, lr_policy="step", gamma=0.1, stepsize=25_600_000, max_iter=81_920_000
    )
    found = rates(params, [25_599_999, 25_600_000, 51_199_999, 51_200_000])
    assert [f"{rate:.6g}" for rate in found] == ["0.1", "0.01", "0.01", "0.001"]


def test_exp_fades_to_nothing_in_float():
    params = SolverParameters(base_lr=0.01, lr_policy="exp", gamma=0.95, max_iter=2000)
    tiny = float(np.finfo(np.float32).tiny)
    assert [rate < tiny for rate in rates(params, [1612, 1613])] == [False, True]
    assert [rate == 0 for rate in rates(params, [1937, 1938])] == [False, True]


@pytest.mark.parametrize("iteration", [0, 1, 100, 9999, 123456])
def test_inv_sigmoid_and_exp_against_decimals(iteration):
    """Fifty digits, rounded where Caffe's float has it."""
    getcontext().prec = 50
    base, gamma, exponent = (Decimal(single(x)) for x in (0.01, 0.0001, 0.75))
    grown = Decimal(float(np.float32(1) + np.float32(gamma) * np.float32(iteration)))
    exact = base * (grown.ln() * -exponent).exp()
    params = SolverParameters(base_lr=0.01, lr_policy="inv", gamma=0.0001, power=0.75)
    assert rates(params, [iteration])[0] == float(np.float32(float(exact)))

    distance = np.float32(iteration) - np.float32(5000)
    exact = base / (1 + Decimal(float(-np.float32(gamma) * distance)).exp())
    params = SolverParameters(base_lr=0.01, lr_policy="sigmoid", gamma=0.0001, stepsize=5000)
    assert rates(params, [iteration])[0] == float(np.float32(float(exact)))

    exact = base * Decimal(single(0.9999)) ** iteration
    params = SolverParameters(base_lr=0.01, lr_policy="exp", gamma=0.9999)
    assert rates(params, [iteration])[0] == float(np.float32(float(exact)))


def test_poly_past_its_end_is_nothing_and_says_so():
    policy = policy_of(SolverParameters(base_lr=1, lr_policy="poly", power=0.5, max_iter=10))
    assert [policy.rate(i, {})[0] for i in (10, 11, 100)] == [0, 0, 0]
    assert policy.notice(10) is None
    assert "max_iter (10)" in str(policy.notice(11))


def test_all_rates_are_floats_of_the_nets_type():
    for name in ("fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"):
        params = SolverParameters(
            base_lr=0.1, lr_policy=name, gamma=0.3, power=0.3, stepsize=7, stepvalue=[3], max_iter=99
        )
        for rate in rates(params, range(0, 99, 7)):
            assert rate == np.float32(rate), name


@pytest.mark.parametrize(
    ("base", "exponent"), [(2.0, 5000.0), (-2.0, 5001.0), (0.0, -1.0), (-1.0, 0.5), (0.0, 0.0), (0.5, 5000.0)]
)
def test_powers_are_those_of_c(base, exponent):
    with np.errstate(all="ignore"):
        expected = float(np.power(np.float64(base), np.float64(exponent)))
    found = power(base, exponent)
    assert found == expected or (math.isnan(found) and math.isnan(expected))
