"""However an array lies in memory: the right bits on every backend, or an error with nothing changed."""

from __future__ import annotations

import tempfile

import ml_dtypes
import numpy as np
import pytest

from generated import LAMB, SAM, Adafactor, Adam
from solvergen import RowSparse, Wrappers
from solvergen.constraints import MaxNorm
from solvergen.errors import ArrayError, OptimizerError, SnapshotMismatch
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS, stepped

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


class Subclass(np.ndarray):
    pass


def beginning_at(offset, array):
    """A copy that begins so many bytes behind a boundary of 64."""
    raw = np.zeros(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + offset
    view = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def mapped(array, mode):
    with tempfile.TemporaryFile() as file:
        file.write(array.tobytes())
        file.flush()
        return np.memmap(file, array.dtype, mode, shape=array.shape)


def in_a_field(array):
    records = np.zeros(array.shape, [("of", array.dtype), ("beside", "u1")])
    records["of"] = array
    return records["of"]


FINE = {
    "plain": np.copy,
    "an element further": lambda a: beginning_at(a.itemsize, a),
    "over bytes": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "mapped to read": lambda a: mapped(a, "r"),
    "mapped copy": lambda a: mapped(a, "c"),
    "as strides say": lambda a: np.lib.stride_tricks.as_strided(a.copy(), a.shape, a.strides),
}
LIES_BADLY = {
    "reversed": lambda a: a[::-1].copy()[::-1],
    "strided": lambda a: np.repeat(a, 2, axis=1)[:, ::2],
    "columns first": np.asfortranarray,
    "with a margin": lambda a: np.pad(a, ((0, 0), (0, 3)))[:, : a.shape[1]],
    "broadcast": lambda a: np.broadcast_to(a[:1], a.shape),
    "field of records": in_a_field,
    "misaligned": lambda a: beginning_at(1, a),
}
IS_NONE = {
    "matrix": lambda a: a.view(np.matrix),
    "masked": lambda a: np.ma.masked_array(a.copy()),
    "records": lambda a: a.view(np.recarray),
    "subclass": lambda a: a.view(Subclass),
    "objects": lambda a: a.astype(object),
    "of nothing": lambda a: np.zeros(a.shape, "V0"),
    "list": lambda a: a.tolist(),
    "scalar": lambda a: a.dtype.type(3),
}


def array(seed, dtype=F):
    return np.random.default_rng(seed).normal(size=(4, 5)).astype(dtype)


def params_of(opt):
    return {name: np.array(param) for name, param in opt.params.items()}


def everything(opt):
    found = params_of(opt)
    for state in opt.state:
        found |= {f"{state} {name}": np.array(value) for name, value in opt.state[state].items()}
    return found | {"t": np.array(opt.t, F)}


def assert_equal(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert_same_bits(one[name], other[name])


def made(rule, backend, dtype=F, **more):
    return rule({"a": array(1, dtype), "b": array(2, dtype)}, lr=0.1, backend=backend, **more)


@every_backend
@pytest.mark.parametrize(
    ("rule", "dtype"), [(Adam, F), (Adam, ml_dtypes.bfloat16), (Adam, np.float64), (Adafactor, F), (SAM, F)]
)
def test_gradients_that_can_be_read(backend, rule, dtype):
    plain, other = (made(rule, backend, dtype) for _ in range(2))
    for lay in FINE.values():
        stepped(plain, {"a": array(3, dtype), "b": array(4, dtype)})
        stepped(other, {"a": lay(array(3, dtype)), "b": lay(array(4, dtype))})
    assert_equal(everything(plain), everything(other))


@every_backend
@pytest.mark.parametrize("rule", [Adam, LAMB, SAM])
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_gradients_that_cannot(backend, rule):
    opt = made(rule, backend)
    stepped(opt, {"a": array(3), "b": array(4)})
    before = everything(opt)
    for lay in (*LIES_BADLY.values(), *IS_NONE.values(), lambda a: a.astype(">f4")):
        with pytest.raises(ArrayError, match="gradient of 'b'"):
            stepped(opt, {"a": array(3), "b": lay(array(4))})
    assert_equal(everything(opt), before)


@every_backend
def test_a_later_evaluation_that_cannot_be_read(backend):
    opt = made(SAM, backend)
    before = everything(opt)
    for lay in (*LIES_BADLY.values(), *IS_NONE.values()):
        given = iter([array(4), lay(array(4))])
        with pytest.raises(ArrayError, match="evaluation 2 of the step: the gradient of 'b'"):
            opt.step(lambda given=given: (None, {"a": array(3), "b": next(given)}))
    assert_equal(everything(opt), before)


@every_backend
def test_parameters_and_copies_over_memory_of_all_kinds(backend):
    fine = {name: lay for name, lay in FINE.items() if name not in ("over bytes", "mapped to read")}
    wraps = Wrappers(average=0.5, shadow="float16")
    plain = Adam({name: array(1) for name in fine}, backend=backend, wrappers=wraps)
    other = Adam({name: lay(array(1)) for name, lay in fine.items()}, backend=backend, wrappers=wraps)
    other.shadows = {name: lay(np.zeros((4, 5), np.float16)) for name, lay in fine.items()}
    averages = []
    for opt in (plain, other):
        for seed in range(2):
            opt.step({name: array(seed) for name in fine})
        with opt.averaged():
            averages.append(params_of(opt))
        opt.step({name: RowSparse(np.array([2, 0]), array(5)[:2]) for name in fine})
        opt.constraint = MaxNorm(0.5)
        opt.step({name: array(6) for name in fine})
    assert_equal(*averages)
    assert_equal(everything(plain), everything(other))
    for name in fine:
        assert_same_bits(plain.shadows[name], other.shadows[name])


@every_backend
def test_copies_that_cannot_be_written(backend):
    opt = made(Adam, backend, wrappers=Wrappers(shadow="float16"))
    before = everything(opt)
    for lay in (*LIES_BADLY.values(), *IS_NONE.values(), FINE["over bytes"], FINE["mapped to read"]):
        with pytest.raises(ArrayError, match="the array for the copy of 'b'"):
            opt.shadows = {"b": lay(np.zeros((4, 5), np.float16))}
    assert_equal(everything(opt), before)


@pytest.mark.parametrize("backend", HOST_BACKENDS[:2])
def test_a_state_dict_may_hold_arrays_of_any_layout(backend):
    opt = made(Adam, backend)
    opt.step({"a": array(3), "b": array(4)})
    wanted = everything(opt)
    lays = {**FINE, **{name: lay for name, lay in LIES_BADLY.items() if name != "broadcast"}}
    for lay in (*lays.values(), lambda a: a.astype(">f4")):
        other = made(Adam, backend)
        given = opt.state_dict()
        given["tensors"]["b"]["arrays"] = {
            name: lay(found) for name, found in given["tensors"]["b"]["arrays"].items()
        }
        other.load_state_dict(given)
        for state in opt.state:
            assert_same_bits(other.state[state]["b"], wanted[f"{state} b"])
    for lay in IS_NONE.values():
        given = opt.state_dict()
        given["tensors"]["b"]["arrays"]["exp_avg"] = lay(array(9))
        with pytest.raises((OptimizerError, SnapshotMismatch)):
            opt.load_state_dict(given)
    assert_equal(everything(opt), wanted)


@every_backend
def test_a_state_dict_of_the_optimizers_own_arrays(backend):
    """Nothing is overwritten before it is read."""
    opt = made(Adam, backend)
    opt.step({"a": array(3), "b": array(4)})
    before, given = everything(opt), opt.state_dict()
    averages = opt.state["exp_avg"]
    given["tensors"]["a"]["arrays"]["exp_avg"] = averages["b"][::-1]
    given["tensors"]["b"]["arrays"]["exp_avg"] = averages["a"]
    opt.load_state_dict(given)
    assert_same_bits(averages["a"], before["exp_avg b"][::-1])
    assert_same_bits(averages["b"], before["exp_avg a"])
