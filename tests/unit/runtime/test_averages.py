"""The average of the parameters, and how it changes places with them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generated import SGD, Adam
from solvergen.errors import ArrayError, OptimizerError
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32

every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def sgd(of, backend="numpy", lr=1.0, **wrappers):
    return SGD(of, lr=lr, backend=backend, wrappers=Wrappers(**wrappers))


def ones():
    return [np.zeros(3, F), np.zeros(6, F)]


def grads(a, b):
    return [np.full(3, a, F), np.full(6, b, F)]


@every_backend
@pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
def test_it_follows_and_changes_places(backend, dtype):
    of = [np.linspace(-1, 1, 5).astype(dtype), np.array(2, dtype)]
    opt = sgd(of, backend, lr=0.25, average=0.75)
    expected = [a.astype(opt.averages[0].dtype) for a in of]
    for step in range(1, 4):
        opt.step([np.full(5, step, dtype), np.array(-step, dtype)])
        expected = [0.75 * e + 0.25 * a.astype(e.dtype) for e, a in zip(expected, of, strict=True)]
    before = [a.copy() for a in of]
    averages = [opt.averages[i].copy() for i in range(2)]
    for e, a in zip(expected, averages, strict=True):
        assert_same_bits(e, a)
    with opt.averaged():
        for a, average in zip(of, averages, strict=True):
            assert_same_bits(a, average.astype(dtype))
    for i in range(2):
        assert_same_bits(of[i], before[i])
        assert_same_bits(opt.averages[i], averages[i])


def test_back_whatever_is_raised():
    of = ones()
    opt = sgd(of, average=0.5)
    opt.step(grads(1, 1))
    inside = []

    def fails():
        with opt.averaged():
            inside.append(of[0].tolist())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert inside == [[-0.5] * 3]
    assert of[0].tolist() == [-1.0] * 3
    assert opt.averages["0"].tolist() == [-0.5] * 3


@pytest.mark.parametrize("failing", [1, 2])
def test_back_where_the_change_itself_fails(monkeypatch, failing):
    of = [np.zeros(3, ml_dtypes.bfloat16), np.zeros(6, ml_dtypes.bfloat16)]
    opt = sgd(of, average=0.5)
    opt.step([np.ones(a.shape, a.dtype) for a in of])
    before = [a.copy() for a in of]
    averages = [opt.averages[i].copy() for i in range(2)]
    copy_in, seen = opt._backend.copy_in, []

    def fails(target, host):
        seen.append(target)
        if len(seen) == failing:
            raise MemoryError
        copy_in(target, host)

    with monkeypatch.context() as patched:
        patched.setattr(opt._backend, "copy_in", fails)
        with pytest.raises(MemoryError):
            opt.averaged().__enter__()
    assert len(seen) == 2 * failing - 1  # what was changed is put back
    for i in range(2):
        assert_same_bits(of[i], before[i])
        assert_same_bits(opt.averages[i], averages[i])
    opt.step([np.ones(a.shape, a.dtype) for a in of])


def test_nothing_else_is_done_meanwhile(tmp_path):
    opt = sgd(ones(), average=0.5)
    with opt.averaged():
        for act in (
            lambda: opt.step(grads(1, 1)),
            opt.flush,
            opt.state_dict,
            lambda: opt.save(tmp_path / "s.h5"),
            lambda: opt.load_state_dict({}),
            lambda: opt.averaged().__enter__(),
            lambda: opt.averages,
        ):
            with pytest.raises(OptimizerError, match=r"averaged\(\)|state_dict has no"):
                act()
    opt.step(grads(1, 1))


def test_read_only_parameters():
    of = ones()
    opt = sgd(of, average=0.5)
    opt.step(grads(1, 1))
    of[1].flags.writeable = False
    block = opt.averaged()
    with pytest.raises(ArrayError, match="read-only"):
        block.__enter__()
    assert of[0].tolist() == [-1.0] * 3
    of[1].flags.writeable = True
    opt.step(grads(1, 1))


def test_without_one():
    opt = sgd(ones(), l2=0.1)
    with pytest.raises(OptimizerError, match="keeps no average"):
        _ = opt.averages
    with pytest.raises(OptimizerError, match="keeps no average"), opt.averaged():
        pass


def test_one_that_begins_as_a_copy():
    of = [np.arange(3, dtype=F)]
    opt = Adam(of, backend="numpy", wrappers=Wrappers(average=0.99))
    assert_same_bits(opt.averages[0], of[0])
    assert not np.shares_memory(opt.averages[0], of[0])
