from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from solvergen.bench.peers import arguments_for, torch_peer
from solvergen.errors import BenchmarkError
from solvergen.spec.model import Counterpart


def rule(params, lr=0.1, betas=(0.9, 0.99, 0.5), *, eps=1e-8, decay=0.0, fast=False):
    raise AssertionError("it is only asked for its signature")


def test_arguments_are_mapped_and_the_rest_is_left_alone():
    counterpart = Counterpart(
        "x",
        "x.rule",
        maps=(("beta1", "betas[0]"), ("beta3", "betas[2]"), ("wd", "decay"), ("nu", "1 - decay")),
        lacks=("amsgrad",),
    )
    values = {"lr": 0.5, "beta1": 0.7, "beta3": 0.1, "wd": 0.01, "nu": 3.0, "amsgrad": True, "fast": True}
    assert arguments_for(counterpart, values, rule) == {
        "lr": 0.5,
        "betas": (0.7, 0.99, 0.1),
        "decay": 0.01,
        "fast": True,
    }


def test_a_tuple_longer_than_the_default_is_all_ours():
    counterpart = Counterpart("x", "x.rule", maps=tuple((f"b{i}", f"betas[{i}]") for i in range(4)))
    values = {f"b{i}": float(i) for i in range(4)}
    assert arguments_for(counterpart, values, rule) == {"betas": (0.0, 1.0, 2.0, 3.0)}


def test_a_library_that_lacks_the_class_says_so():
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    assert torch.__version__
    with pytest.raises(BenchmarkError, match=r"no torch\.optim\.Nothing"):
        torch_peer(Counterpart("torch", "torch.optim.Nothing"), {}, lambda: [np.zeros(3, np.float32)], 1)


def test_torch_steps():
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    before = torch.get_num_threads()
    param = np.zeros(3, np.float32)
    peer = torch_peer(Counterpart("torch", "torch.optim.SGD"), {"lr": 0.5}, lambda: [param], 1)
    torch.set_num_threads(before)
    peer.receive([np.ones(3, np.float32)])
    peer.step(None)
    assert peer.name == "torch SGD, fused"
    assert param.tolist() == [-0.5] * 3


def test_torch_steps_in_bfloat16():
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    before = torch.get_num_threads()
    param = np.zeros(3, ml_dtypes.bfloat16)
    peer = torch_peer(Counterpart("torch", "torch.optim.SGD"), {"lr": 0.5}, lambda: [param], 1)
    torch.set_num_threads(before)
    peer.receive([np.ones(3, ml_dtypes.bfloat16)])
    peer.step(None)
    assert param.astype(np.float32).tolist() == [-0.5] * 3
