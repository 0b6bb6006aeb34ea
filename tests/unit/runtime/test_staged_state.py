"""State that staged rules keep beside the tensors: taken out, put back, and looked at."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import OptimizerError, SnapshotError, SnapshotMismatch
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam
from tests.support.handwritten.staged import ALL, ClippedSGD, DistanceSGD, NovoGrad

F = np.dtype(np.float32)
WAYS = ["state_dict", ".h5", ".safetensors"]


def params(rng):
    return {
        "w": rng.standard_normal((3, 4)).astype(F),
        "half": rng.standard_normal(5).astype(ml_dtypes.bfloat16),
        "double": rng.standard_normal(2),
        "empty": np.zeros((0, 3), F),
    }


def gradients(rng, of):
    return {name: rng.standard_normal(p.shape).astype(p.dtype) for name, p in of.items()}


def numbers(opt):
    """All states that are numbers."""
    definition = opt.definition
    scalar = [name for name in opt.state if name in definition.all_scalar_states]
    return {name: dict(opt.state[name]) for name in scalar} | {"shared": dict(opt.shared)}


def move(opt, other, way, tmp_path, **how):
    """Take the state of ``opt`` over to ``other``."""
    if way == "state_dict":
        for name, p in other.params.items():
            p[...] = opt.params[name]
        other.load_state_dict(opt.state_dict())
    else:
        opt.save(tmp_path / f"s{way}")
        other.load(tmp_path / f"s{way}", **how)


@pytest.mark.parametrize("optimizer", ALL)
@pytest.mark.parametrize("way", WAYS)
def test_resuming_is_never_having_stopped(rng, tmp_path, optimizer, way):
    first = params(rng)
    opt = optimizer(first, lr=0.5)
    history = [gradients(rng, first) for _ in range(5)]
    history[1]["w"] = None
    for grads in history[:3]:
        opt.step(grads)
    second = {name: np.zeros_like(p) for name, p in first.items()}
    resumed = optimizer(second)
    resumed.step(gradients(rng, second))  # states that are other ones than at the beginning
    move(opt, resumed, way, tmp_path)
    assert numbers(resumed) == numbers(opt)
    for grads in history[3:]:
        opt.step(grads)
        resumed.step(grads)
    assert numbers(resumed) == numbers(opt)
    for name in first:
        assert_same_bits(second[name], first[name])
    assert dict(resumed.steps) == dict(opt.steps)


@pytest.mark.parametrize("way", WAYS)
def test_every_bit_of_them_comes_back(tmp_path, way):
    opt, other = DistanceSGD(np.ones(2)), DistanceSGD(np.ones(2))
    for d in (5e-324, np.inf, np.nan, -0.0):
        opt._workspace.write(np.zeros((1, 0)), np.array([d, 7.0]))
        move(opt, other, way, tmp_path)
        assert_same_bits(np.float64(other.shared["d"]), np.float64(d))
    opt, other = NovoGrad([np.ones(2), np.ones(3)]), NovoGrad([np.ones(2), np.ones(3)])
    opt._workspace.write(np.array([[np.inf, 0.1], [5e-324, np.nan]]), np.zeros(0))
    move(opt, other, way, tmp_path)
    assert_same_bits(np.array(list(other.state["v"].values())), np.array([np.inf, 5e-324]))
    assert_same_bits(np.array(list(other.state["last"].values())), np.array([0.1, np.nan]))


def test_the_state_dict_is_a_copy(rng):
    opt = DistanceSGD([np.ones(3)])
    state = opt.state_dict()
    assert state["schema"] == {"start": "param", "d": "shared", "steps": "shared"}
    assert state["shared"] == {"d": 0.01, "steps": 0.0}
    assert state["tensors"]["0"]["scalars"] == {}
    state["shared"]["d"] = 9.0
    opt.step([np.ones(3)])
    assert opt.shared["d"] == 0.01
    assert "shared" not in NovoGrad([np.ones(3)]).state_dict()
    assert list(NovoGrad([np.ones(3)]).state_dict()["tensors"]["0"]["scalars"]) == ["v", "mu_product", "last"]
    assert NovoGrad([np.ones(3)]).state_dict()["tensors"]["0"]["scalars"] == {
        "v": 0.0,
        "mu_product": 1.0,
        "last": -1.0,
    }


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda s: s.pop("shared"), "the state_dict has no 'shared'"),
        (lambda s: s.update(shared=[1.0]), "'shared' in the state_dict"),
        (lambda s: s["shared"].update(d="x"), "shared['d'] in the state_dict isn't a number"),
        (lambda s: s["shared"].update(e=1.0), "no shared states 'e'"),
        (lambda s: s["shared"].pop("d"), "state 'd' exists here, not in it: under the same options"),
        (lambda s: s["schema"].update(d="scalar"), "no shared states 'd'"),
    ],
)
def test_state_dicts_that_are_none(broken, message):
    opt = DistanceSGD(np.ones(2), d0=0.5)
    state = opt.state_dict()
    state["shared"]["steps"] = 5.0
    broken(state)
    with pytest.raises((OptimizerError, SnapshotError, SnapshotMismatch)) as caught:
        opt.load_state_dict(state)
    assert message in str(caught.value) + "\n".join(getattr(caught.value, "differences", ()))
    assert dict(opt.shared) == {"d": 0.5, "steps": 0.0}


def test_options_between_groups_survive(rng, tmp_path):
    def groups():
        return [{"params": [np.ones(3)], "adapt": False}, {"params": [np.ones(2)]}]

    opt, other = DistanceSGD(groups(), d0=0.25), DistanceSGD(groups())
    opt.step([None, np.ones(2)])
    move(opt, other, ".h5", tmp_path)
    assert dict(other.shared) == {"d": 0.25, "steps": 1.0}
    with pytest.raises(SnapshotMismatch, match="state 'd' exists in it, not here"):
        move(
            opt,
            DistanceSGD([{**g, "adapt": False} for g in groups()]),
            ".h5",
            tmp_path,
        )


def test_hyperparameters_stay_where_that_is_asked(tmp_path):
    opt, other = DistanceSGD(np.ones(2), lr=3.0, d0=0.125), DistanceSGD(np.ones(2), lr=2.0)
    move(opt, other, ".safetensors", tmp_path, hyperparameters=False)
    assert other.lr == 2.0
    assert other.shared["d"] == 0.125


def test_what_is_another_optimizers_is_refused(tmp_path):
    Adam(np.ones(2), backend="numpy").save(tmp_path / "s.h5")
    with pytest.raises(SnapshotMismatch, match="of the optimizer 'adam'"):
        DistanceSGD(np.ones(2)).load(tmp_path / "s.h5")


@pytest.mark.parametrize("optimizer", ALL)
def test_configurations_hold_none_of_it(rng, optimizer):
    first = params(rng)
    opt = optimizer(first)
    fresh = json.dumps(opt.get_config())
    opt.step(gradients(rng, first))
    assert json.dumps(opt.get_config()) == fresh
    again = optimizer.from_config(params(rng), json.loads(fresh))
    assert numbers(again) == numbers(optimizer(params(rng)))
    assert "t=1" in repr(opt)


def test_a_backend_made_by_the_caller_has_a_workspace_too():
    from solvergen.runtime.backends.numpy import NumpyBackend

    backend = NumpyBackend()
    a, b = (ClippedSGD(np.ones(2), backend=backend, lr=1.0) for _ in range(2))
    a.step(np.array([3.0, 4.0]))
    b.step(np.array([0.3, 0.4]))
    np.testing.assert_allclose(a.params["0"], [0.4, 0.2], rtol=1e-12)
    np.testing.assert_allclose(b.params["0"], [0.7, 0.6], rtol=1e-12)
