from __future__ import annotations

import numpy as np
import pytest

from solvergen.bench.peers import arguments_for, optax_peer, torch_peer
from solvergen.errors import BenchmarkError
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype
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


def test_a_momentum_of_0_is_none_where_theirs_is_none():
    def rule(params, lr=0.1, momentum=None):
        raise AssertionError("it is only asked for its signature")

    counterpart = Counterpart("x", "x.rule")
    assert arguments_for(counterpart, {"lr": 0.0, "momentum": 0.0}, rule) == {"lr": 0.0}
    assert arguments_for(counterpart, {"momentum": 0.9}, rule) == {"momentum": 0.9}


def test_a_library_that_lacks_the_class_says_so():
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    assert torch.__version__
    with pytest.raises(BenchmarkError, match=r"no torch\.optim\.Nothing"):
        torch_peer(Counterpart("torch", "torch.optim.Nothing"), {}, lambda: [np.zeros(3, np.float32)], 1)


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
def test_torch_steps(dtype):
    torch = pytest.importorskip("torch", reason="torch isn't installed")
    before = torch.get_num_threads()
    param = np.zeros(3, numpy_dtype(dtype))
    peer = torch_peer(Counterpart("torch", "torch.optim.SGD"), {"lr": 0.5}, lambda: [param], 1)
    torch.set_num_threads(before)
    peer.receive([np.ones(3, numpy_dtype(dtype))])
    peer.step(None)
    assert peer.name == "torch SGD, fused"
    assert param.tolist() == [-0.5] * 3


@pytest.mark.parametrize("dtype", list(STORAGE_TYPES))
def test_optax_steps_in_the_type_that_is_timed(dtype):
    pytest.importorskip("optax", reason="optax isn't installed")
    jax = pytest.importorskip("jax", reason="jax isn't installed")
    before = jax.config.jax_enable_x64
    counterpart = Counterpart("optax", "optax.sgd", maps=(("lr", "learning_rate"),))
    try:
        peer = optax_peer(counterpart, {"lr": 0.5}, lambda: [np.zeros(3, numpy_dtype(dtype))], 1)
        received = peer.receive([np.ones(3, numpy_dtype(dtype))])
        assert received[0].dtype.name == dtype
        peer.step(received)
    finally:
        jax.config.update("jax_enable_x64", before)
    assert peer.name == "optax sgd, jitted"


def test_a_spec_has_nothing_imported_and_called_but_optimizers_of_the_library():
    pytest.importorskip("torch", reason="torch isn't installed")
    values, draw = {"status": 7.0}, lambda: [np.zeros(3, np.float32)]
    with pytest.raises(BenchmarkError, match=r"os\._exit is not part of torch"):
        torch_peer(Counterpart("torch", "os._exit"), values, draw, 1)
    with pytest.raises(BenchmarkError, match=r"torch\.load is no optimizer of torch's"):
        torch_peer(Counterpart("torch", "torch.load"), values, draw, 1)
    pytest.importorskip("optax", reason="optax isn't installed")
    with pytest.raises(BenchmarkError, match=r"os\._exit is not part of optax"):
        optax_peer(Counterpart("optax", "os._exit"), values, draw, 1)
