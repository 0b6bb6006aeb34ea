"""The average of the parameters, and how it changes places with them."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from generated import SGD, Adam
from solvergen.errors import ArrayError, OptimizerError
from solvergen.runtime.averages import _PIECE as PIECE
from solvergen.runtime.averages import Exchange, average_column
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
    assert len(seen) == 2 * failing  # what may have changed is put back
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


@every_backend
def test_read_only_averages(backend):
    of = ones()
    opt = sgd(of, backend, average=0.5)
    opt.step(grads(1, 1))
    opt.averages[1].flags.writeable = False
    block = opt.averaged()
    with pytest.raises(ArrayError, match="the average of '1' has been made read-only; nothing was changed"):
        block.__enter__()
    assert [a.tolist() for a in of] == [[-1.0] * 3, [-1.0] * 6]
    assert [opt.averages[i].tolist() for i in range(2)] == [[-0.5] * 3, [-0.5] * 6]
    opt.averages[1].flags.writeable = True
    opt.step(grads(1, 1))


def test_averages_of_narrow_parameters_are_only_read():
    of = [np.zeros(3, np.float16)]
    opt = sgd(of, average=0.5)
    opt.step([np.ones(3, np.float16)])
    opt.averages[0].flags.writeable = False
    with opt.averaged():
        assert of[0].tolist() == [-0.5] * 3
    assert of[0].tolist() == [-1.0] * 3


@every_backend
@pytest.mark.parametrize("dtype", [F, np.float16])
def test_what_is_made_read_only_in_the_block_is_put_back(backend, dtype):
    of = [np.zeros(3, dtype), np.zeros(6, dtype)]
    opt = sgd(of, backend, average=0.5)
    opt.step([np.ones(a.shape, dtype) for a in of])
    averages = [opt.averages[i] for i in range(2)]
    with opt.averaged():
        of[0].flags.writeable = False
        averages[1].flags.writeable = False
        with pytest.raises(ValueError, match="read-only"):
            of[0][...] = 3
    assert [a.tolist() for a in of] == [[-1.0] * 3, [-1.0] * 6]
    assert [opt.averages[i].tolist() for i in range(2)] == [[-0.5] * 3, [-0.5] * 6]
    of[0].flags.writeable = averages[1].flags.writeable = True
    opt.step([np.ones(a.shape, dtype) for a in of])


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE + 3])
def test_pieces(size):
    of = [np.arange(size, dtype=F), np.arange(size, dtype=np.float64), np.arange(2, dtype=F)]
    opt = sgd(of, lr=0.25, average=0.5)
    opt.step([np.ones_like(a) for a in of])
    before, averages = [a.copy() for a in of], [opt.averages[i].copy() for i in range(3)]
    with opt.averaged():
        for a, average in zip(of, averages, strict=True):
            assert_same_bits(a, average)
    for i in range(3):
        assert_same_bits(of[i], before[i])
        assert_same_bits(opt.averages[i], averages[i])


class Fails(np.ndarray):
    """An array that can't be written when its turn comes: half of it is written then."""

    turns = 1000
    """How many writes to such arrays go well before the one that doesn't."""

    def __setitem__(self, key, value):
        Fails.turns -= 1
        if Fails.turns == -1:
            self.view(np.ndarray)[: self.size // 2] = 99
            raise MemoryError
        self.view(np.ndarray)[key] = value


def failing_exchange(monkeypatch):
    """What exchanges two parameters of several pieces, the arrays and what they hold."""
    monkeypatch.setattr("solvergen.runtime.averages._PIECE", 4)
    of = [np.arange(n, dtype=F) for n in (10, 6)]
    opt = sgd(of, lr=0.25, average=0.5)
    opt.step([np.ones_like(a) for a in of])
    averages = [opt.averages[i] for i in range(2)]
    tensors = [
        replace(
            tensor,
            plan=replace(
                tensor.plan,
                param=tensor.plan.param.view(Fails),
                states=tuple(None if a is None else a.view(Fails) for a in tensor.plan.states),
            ),
        )
        for tensor in opt._tensors
    ]
    column = average_column(opt.definition, opt.groups)
    arrays = [*of, *averages]
    return Exchange(opt._backend, tensors, column), arrays, [a.copy() for a in arrays]


WRITES = 3 * 5
"""Of an exchange of 10 and of 6 elements in pieces of 4."""


@pytest.mark.parametrize("turn", range(WRITES))
def test_undone_whichever_write_fails(monkeypatch, turn):
    exchange, arrays, before = failing_exchange(monkeypatch)
    monkeypatch.setattr(Fails, "turns", turn)
    with pytest.raises(MemoryError):
        exchange.make()
    exchange.undo()
    for array, expected in zip(arrays, before, strict=True):
        assert_same_bits(array, expected)


@pytest.mark.parametrize("turn", range(WRITES))
def test_one_piece_that_stays_keeps_none_of_the_others(monkeypatch, turn):
    exchange, arrays, before = failing_exchange(monkeypatch)
    exchange.make()
    monkeypatch.setattr(Fails, "turns", turn)
    with pytest.raises(MemoryError):
        exchange.undo()
    param = np.concatenate(arrays[:2])
    average = np.concatenate(arrays[2:])
    expected = np.concatenate(before[:2]), np.concatenate(before[2:])
    stays = np.flatnonzero(param != expected[0])
    assert 2 <= stays.size <= 4
    rest = np.setdiff1d(np.arange(16), stays)
    assert_same_bits(param[rest], expected[0][rest])
    assert_same_bits(average[rest], expected[1][rest])
    assert_same_bits(param[stays], expected[1][stays])
    assert_same_bits(average[stays], expected[0][stays])


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
