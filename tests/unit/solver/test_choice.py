"""Which optimizer parameters mean, and that it computes what Caffe's formulas say."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime.wrappers import Wrappers
from solvergen.solver import SolverParameters, SolverParametersError, chosen
from solvergen.solver.choice import CAFFE, optimizer_of
from solvergen.solver.devices import backend_of


def no_gpu() -> int:
    raise BackendUnavailable("none in this test")


def choose(**given):
    return chosen(SolverParameters(solver_mode="CPU", **given), gpus=no_gpu)


@pytest.mark.parametrize("type_", CAFFE)
def test_caffes_types(type_):
    choice = choose(
        type=type_, base_lr=0.1, momentum=0.5, momentum2=0.9, rms_decay=0.8, delta=0.01, weight_decay=0.02
    )
    assert choice.optimizer_class.__name__ == CAFFE[type_]
    expected = {"momentum": 0.5, "momentum2": 0.9, "rms_decay": 0.8, "delta": 0.01}
    assert choice.hyperparameters["lr"] == np.float32(0.1)
    assert choice.hyperparameters["weight_decay"] == np.float32(0.02)
    for name in choice.hyperparameters.keys() & expected.keys():
        assert choice.hyperparameters[name] == np.float32(expected[name])
    assert choice.options == {"l1": False}
    assert choice.wrappers is None
    assert choose(type=type_, weight_decay=1, regularization_type="L1").options == {"l1": True}


def test_one_of_ours():
    choice = choose(
        optimizer="AdamW", base_lr=0.1, hyperparameters={"beta1": 0.8, "amsgrad": True}, weight_decay=0.25
    )
    assert choice.optimizer_class.__name__ == "AdamW"
    assert choice.hyperparameters == {"lr": np.float32(0.1), "beta1": 0.8}
    assert choice.options == {"amsgrad": True}
    assert choice.wrappers == Wrappers(order="caffe", l2=0.25)
    l1 = choose(optimizer="AdamW", weight_decay=0.25, regularization_type="L1")
    assert l1.wrappers == Wrappers(order="caffe", l1=0.25)


def test_what_surrounds_the_update():
    """Against numpy: the norm of the sum, the mean, the decay, the step."""
    choice = choose(base_lr=0.5, clip_gradients=2, iter_size=4, weight_decay=0.125)
    params = [np.array([1, -2, 3], np.float32)]
    total = np.array([3, 4, 12], np.float32)
    clipped = total * np.float32(2 / 13)
    expected = params[0] - np.float32(0.5) * (clipped / 4 + np.float32(0.125) * params[0])
    choice.make(params, backend="numpy").step([total])
    np.testing.assert_array_max_ulp(params[0], expected, 1)


def test_a_threshold_of_zero_leaves_the_decay_alone():
    params = [np.array([1, -2], np.float32)]
    choose(base_lr=1, clip_gradients=0, weight_decay=0.5).make(params, backend="numpy").step(
        [np.array([3, 4], np.float32)]
    )
    assert params[0].tolist() == [0.5, -1]


def test_making_takes_changes():
    optimizer = choose(base_lr=1).make([np.zeros(1, np.float32)], backend="numpy", lr=0.25)
    assert optimizer.lr == 0.25


def test_errors_come_with_their_field():
    with pytest.raises(SolverParametersError, match="no optimizer 'Adamw'; did you mean 'AdamW'"):
        optimizer_of(SolverParameters(optimizer="Adamw"))
    with pytest.raises(SolverParametersError, match="unknown solver type 'adam'; did you mean 'Adam'"):
        optimizer_of(SolverParameters(type="adam"))


def test_backends():
    assert backend_of(SolverParameters(), lambda: 2) == ("cuda", ())
    assert backend_of(SolverParameters(device_id=1), lambda: 2)[0] == "cuda"
    with pytest.raises(BackendUnavailable, match="device_id is 2, and the GPUs here are 0 to 1"):
        backend_of(SolverParameters(device_id=2), lambda: 2)
    name, (said, *_) = backend_of(SolverParameters(), no_gpu)
    assert name in ("cpu", "numpy")
    assert said.startswith("solver_mode is GPU by Caffe's default, but there is none (none in this test)")
    assert backend_of(SolverParameters(solver_mode="GPU"), no_gpu)[1][0].startswith("solver_mode is GPU, but")
    assert "says nothing" in backend_of(SolverParameters(solver_mode="CPU", device_id=3), no_gpu)[1][0]


def test_a_choice_never_changes():
    with pytest.raises(dataclasses.FrozenInstanceError):
        choose().backend = "x"
