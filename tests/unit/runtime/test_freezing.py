"""Frozen parameters, and a function that constrains the others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from generated import LAMB, SGD, Adam
from solvergen.errors import OptimizerError
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def params():
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=5).astype(F) for name in "abc"}


def gradients(step, of):
    rng = np.random.default_rng(100 + step)
    return {name: rng.normal(size=array.shape).astype(F) for name, array in of.items()}


@every_backend
class TestFreezing:
    @pytest.mark.parametrize("make", [Adam, LAMB])
    def test_is_as_without_a_gradient(self, backend, make):
        ours, theirs = params(), params()
        wraps = Wrappers(clip_grad_norm=0.5)
        one, other = (make(of, backend=backend, wrappers=wraps) for of in (ours, theirs))
        for step in range(6):
            if step == 2:
                one.freeze("b")
            if step == 4:
                one.unfreeze()
            found = gradients(step, ours)
            one.step(found)
            other.step({**found, "b": None} if 2 <= step < 4 else found)
        for name in ours:
            assert_same_bits(ours[name], theirs[name])
        assert dict(one.steps) == {"a": 6, "b": 4, "c": 6}

    def test_gradients_of_frozen_tensors_are_not_looked_at(self, backend):
        of = params()
        opt = Adam(of, backend=backend, nonfinite="raise")
        opt.freeze(["a", "c"])
        before = {name: array.copy() for name, array in of.items()}
        bad = np.full(5, np.nan, F)
        assert opt.step({"a": bad, "b": np.ones(5, F), "c": "nothing"}) is True
        assert_same_bits(of["a"], before["a"])
        assert opt.frozen == ("a", "c")
        assert (of["b"] != before["b"]).all()

    def test_accumulation(self, backend):
        of = params()
        before = {name: array.copy() for name, array in of.items()}
        opt = SGD(of, lr=1.0, backend=backend, wrappers=Wrappers(accumulate=2))
        opt.freeze("a")
        opt.step({name: np.full(5, 2, F) for name in of})
        with pytest.raises(OptimizerError, match="flush"):
            opt.freeze("b")
        opt.step({name: np.full(5, 4, F) for name in of})
        assert opt.pending == 0
        assert_same_bits(of["a"], before["a"])
        assert_same_bits(of["b"], before["b"] - F(3))


def made(of, frozen):
    groups = [{"params": {"a": of["a"]}, "frozen": True}, {"params": {"b": of["b"], "c": of["c"]}, **frozen}]
    return Adam(groups, backend="numpy")


def test_groups_may_be_frozen():
    opt = made(params(), {"frozen": ["c"]})
    assert opt.frozen == ("a", "c")
    assert made(params(), {"frozen": False}).frozen == ("a",)


def test_what_is_no_name():
    with pytest.raises(
        OptimizerError, match=r"params\[1\]\['frozen'\] has 'a', which is not the name of a parameter"
    ):
        made(params(), {"frozen": ["a"]})
    opt = Adam(params(), backend="numpy")
    with pytest.raises(OptimizerError, match="freeze must be a name or a list"):
        opt.freeze(3)
    with pytest.raises(OptimizerError, match="freeze must be a name or a list of names, not b'a'"):
        opt.freeze(b"a")
    with pytest.raises(OptimizerError, match="unfreeze has 'd'"):
        opt.unfreeze(["a", "d"])


def test_by_position():
    opt = SGD([np.ones(2, np.float32) for _ in range(3)], lr=0.1, backend="numpy")
    opt.freeze(0)
    opt.freeze([2, "1"])
    opt.unfreeze([1])
    assert opt.frozen == ("0", "2")
    with pytest.raises(OptimizerError, match="freeze has '3', which is not the name of a parameter"):
        opt.freeze(3)
    with pytest.raises(OptimizerError, match="freeze must be a name"):
        SGD({"0": np.ones(2, np.float32)}, lr=0.1, backend="numpy").freeze(0)
    groups = [{"params": [np.ones(2)]}, {"params": [np.ones(2), np.ones(2)], "frozen": [2]}]
    assert SGD(groups, lr=0.1, backend="numpy").frozen == ("2",)


def test_in_configurations():
    opt = made(params(), {"frozen": ["c"]})
    config = json.loads(json.dumps(opt.get_config()))
    of = params()
    again = Adam.from_config(of, config)
    assert again.frozen == ("a", "c")
    assert again.get_config() == config
    again.unfreeze()
    assert "frozen" not in again.get_config()["groups"][0]


@pytest.mark.parametrize("suffix", ["h5", "safetensors"])
def test_in_snapshots(tmp_path, suffix):
    path = tmp_path / f"s.{suffix}"
    opt = Adam(params(), backend="numpy", wrappers=Wrappers(average=0.9))
    opt.freeze("b")
    opt.step(gradients(0, opt.params))
    opt.save(path)
    other = Adam(params(), backend="numpy", wrappers=Wrappers(average=0.9))
    other.freeze("c")
    other.load(path, hyperparameters=False)
    assert other.frozen == ("c",)
    other.load(path)
    assert other.frozen == ("b",)
    opt.unfreeze()
    other.load_state_dict(opt.state_dict())
    assert other.frozen == ()
    with pytest.raises(OptimizerError, match="'q', but there is no such tensor"):
        other.load_state_dict({**opt.state_dict(), "frozen": ["q"]})


class TestConstraint:
    @every_backend
    def test_is_called_for_what_was_updated(self, backend):
        of, called = params(), []
        opt = SGD(of, lr=0.1, backend=backend)

        def unit_norm(name, array):
            called.append(name)
            array /= np.linalg.norm(array)

        opt.constraint = unit_norm
        opt.step({**gradients(0, of), "b": None})
        assert called == ["a", "c"]
        assert np.linalg.norm(of["c"]) == pytest.approx(1.0)
        opt.constraint = None
        opt.step(gradients(1, of))
        assert called == ["a", "c"]

    def test_not_by_calls_that_only_sum_up(self):
        called = []
        opt = SGD(params(), lr=0.1, backend="numpy", wrappers=Wrappers(accumulate=2))
        opt.constraint = lambda name, array: called.append(name)
        opt.step(gradients(0, opt.params))
        assert called == []
        opt.flush()
        assert called == ["a", "b", "c"]

    @every_backend
    def test_cant_use_the_optimizer_that_calls_it(self, backend):
        opt = SGD(params(), lr=0.1, backend=backend)
        opt.constraint = lambda name, array: opt.step(gradients(0, opt.params))
        with pytest.raises(OptimizerError, match="step can't be called by the function that constrains"):
            opt.step(gradients(0, opt.params))
        opt.constraint = lambda name, array: opt.state_dict()
        with pytest.raises(OptimizerError, match="state_dict can't be called by the function"):
            opt.step(gradients(0, opt.params))
        opt.constraint = None
        opt.step(gradients(0, opt.params))
        assert opt.t == 3

    def test_is_a_function(self):
        with pytest.raises(OptimizerError, match="constraint must be a function"):
            SGD(params(), lr=0.1, backend="numpy").constraint = 1
