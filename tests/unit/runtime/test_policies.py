"""Gradients that aren't finite."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import NonfiniteGradient
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam, WarmSGD

F = np.float32
DTYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]


def make(dtype, policy, n=40_000):
    params = {"a": np.ones(3, dtype), "b": np.ones(n, dtype), "c": np.ones((), dtype)}
    return params, Adam(params, backend="numpy", nonfinite=policy)


def everything(opt, params):
    arrays = [opt.state[s][name].copy() for s in opt.state for name in params]
    return [*(p.copy() for p in params.values()), *arrays]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", [0, 16_383, 16_384, 39_999])
def test_skip_changes_nothing_and_says_so(value, dtype, place):
    params, opt = make(dtype, "skip")
    grads = {name: np.full_like(p, 0.5) for name, p in params.items()}
    assert opt.step(grads) is True
    before = everything(opt, params)
    grads["b"][place] = value
    assert opt.step(grads) is False
    for a, b in zip(everything(opt, params), before, strict=True):
        assert_same_bits(a, b)
    assert set(opt.steps.values()) == {1}
    grads["b"][place] = 0.5
    assert opt.step(grads) is True
    assert opt.t == 2


def test_raise_names_the_tensors_and_changes_nothing():
    params, opt = make(F, "raise")
    grads = {name: np.full_like(p, 0.5) for name, p in params.items()}
    opt.step(grads)
    before = everything(opt, params)
    grads["a"][1], grads["c"][...] = np.nan, np.inf
    with pytest.raises(NonfiniteGradient, match="gradient of 'a' and 'c' is not finite") as raised:
        opt.step(grads)
    assert raised.value.names == ("a", "c")
    for a, b in zip(everything(opt, params), before, strict=True):
        assert_same_bits(a, b)
    assert opt.t == 1
    with pytest.raises(ArithmeticError):
        opt.step(grads)


def test_propagate_computes_on():
    params, opt = make(F, "propagate")
    grads = {name: np.full_like(p, 0.5) for name, p in params.items()}
    grads["a"][1] = np.nan
    assert opt.step(grads) is True
    assert np.isnan(params["a"]).tolist() == [False, True, False]
    assert opt.t == 1


def test_the_largest_finite_values_are_finite():
    for dtype in DTYPES:
        params, opt = make(dtype, "skip", n=2)
        largest = ml_dtypes.finfo(dtype).max
        assert opt.step({name: np.full_like(p, largest) for name, p in params.items()}) is True


def test_a_skipped_step_leaves_scalar_states_and_absent_gradients_alone():
    params = [np.ones(2, F), np.ones(2, F)]
    opt = WarmSGD(params, backend="numpy", nonfinite="skip")
    opt.step([np.ones(2, F), None])
    kept = dict(opt.state["mu_product"])
    assert opt.step([np.array([1, np.inf], F), np.ones(2, F)]) is False
    assert dict(opt.state["mu_product"]) == kept
    assert list(opt.steps.values()) == [1, 0]
    assert opt.step([None, np.ones(2, F)]) is True


def test_the_policy_may_change():
    params, opt = make(F, "propagate", n=2)
    opt.nonfinite = "skip"
    assert opt.step({name: np.full_like(p, np.nan) for name, p in params.items()}) is False
    assert opt.get_config()["nonfinite"] == "skip"
