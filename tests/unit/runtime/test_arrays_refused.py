"""What can't be updated is refused with a clear text, and nothing has changed then."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import solvergen.optimizers
from solvergen.errors import ArrayError, SolvergenError
from solvergen.runtime.native.library import library
from solvergen.verify import why_unavailable
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam

F = np.float32


def misaligned(dtype=F, n=4):
    raw = np.zeros(n * np.dtype(dtype).itemsize + 1, np.uint8)
    return raw[1:].view(dtype)


def read_only():
    array = np.ones(3, F)
    array.flags.writeable = False
    return array


BAD_PARAMS = {
    "int": (np.ones(3, np.int64), "dtype int64; supported are float32"),
    "complex": (np.ones(3, np.complex64), "complex64"),
    "object": (np.array([1.0, None], object), "object"),
    "longdouble": (np.ones(3, np.longdouble), "supported are"),
    "bool": (np.ones(3, bool), "bool"),
    "structured": (np.zeros(3, [("a", F)]), "supported are"),
    "float8": (np.zeros(3, ml_dtypes.float8_e4m3fn), "float8"),
    "swapped": (np.ones(3, np.dtype(F).newbyteorder()), "byte order.*newbyteorder"),
    "read-only": (read_only(), r"read-only.*copy\(\)"),
    "broadcast": (np.broadcast_to(F(1), (3,)), "not C-contiguous"),
    "strided": (np.ones(6, F)[::2], "ascontiguousarray.* won't help"),
    "reversed": (np.ones(6, F)[::-1], "not C-contiguous"),
    "fortran": (np.ones((2, 3), F, order="F"), "transpose"),
    "misaligned": (misaligned(), "misaligned"),
    "numpy scalar": (F(1.0), "NumPy scalar.*0-d array"),
    "python float": (1.0, r"is a float.*np\.array"),
    "string": ("abc", "is a str"),
    "masked": (np.ma.masked_array(np.ones(3, F)), "plain view"),
    "matrix": (np.ones((2, 2), F).view(np.matrix), "plain view"),
    "none": (None, "None"),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("case", BAD_PARAMS)
def test_parameters_that_cannot_be_updated(case):
    array, message = BAD_PARAMS[case]
    with pytest.raises(ArrayError, match=message):
        Adam(array, backend="numpy")
    with pytest.raises(ArrayError) as raised:
        Adam({"fine": np.ones(2, F), "layer1.weight": array}, backend="numpy")
    assert "'layer1.weight'" in str(raised.value)


def test_tensors_of_torch_are_refused_with_what_shares_their_memory():
    torch = pytest.importorskip("torch")
    weight = torch.nn.Linear(2, 3).weight  # np.asarray refuses it, since it wants a gradient
    with pytest.raises(ArrayError, match=r"pass x\.detach\(\)\.numpy\(\), which shares its memory"):
        Adam(weight)
    with pytest.raises(ArrayError, match=r"pass {name: p\.detach\(\)\.numpy\(\) for name, p in model\."):
        Adam(torch.nn.Linear(2, 3))
    half = weight.detach().bfloat16()
    with pytest.raises(ArrayError, match=r"view\(torch\.int16\)\.numpy\(\)\.view\(ml_dtypes\.bfloat16\)"):
        Adam(half)
    array = half.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    Adam(array, lr=1.0).step(np.ones(array.shape, F))
    assert_same_bits(half.float().numpy(), array.astype(F))


def test_arrays_of_other_libraries():
    class OnGpu:
        __cuda_array_interface__ = {"data": (0, False)}  # noqa: RUF012

    class Exchangeable:
        def __dlpack__(self):
            raise AssertionError("not asked for")

    with pytest.raises(ArrayError, match="lives on a GPU"):
        Adam(OnGpu(), backend="numpy")
    with pytest.raises(ArrayError, match=r"Exchangeable.*np\.asarray"):
        Adam(Exchangeable(), backend="numpy")


BAD_GRADIENTS = {
    "shape": (np.ones(4, F), r"shape \(4,\), the parameter \(3,\)"),
    "rank": (np.ones((3, 1), F), "shape"),
    "0-d": (np.ones((), F), "shape"),
    "float64": (np.ones(3), "float64.*must be float32 or bfloat16 or float16"),
    "int": (np.ones(3, np.int32), "int32"),
    "complex": (np.ones(3, np.complex64), "complex64"),
    "swapped": (np.ones(3, np.dtype(F).newbyteorder()), "byte order"),
    "strided": (np.ones(6, F)[::2], r"pass np\.ascontiguousarray\(gradient\)"),
    "broadcast": (np.broadcast_to(F(1), (3,)), "not C-contiguous"),
    "misaligned": (misaligned(n=3), "misaligned.*copy"),
    "numpy scalar": (F(1.0), "NumPy scalar"),
    "list": ([1.0, 2.0, 3.0], "is a list"),
    "masked": (np.ma.masked_array(np.ones(3, F)), "plain view"),
    "float": (1.0, "is a float"),
}


@pytest.mark.parametrize("after_a_step", [False, True])
@pytest.mark.parametrize("case", BAD_GRADIENTS)
def test_gradients_that_cannot_be_used(case, after_a_step):
    gradient, message = BAD_GRADIENTS[case]
    params = {"first": np.ones(2, F), "layer1.weight": np.ones(3, F)}
    opt = Adam(params, backend="numpy")
    good = {name: np.full_like(p, 0.5) for name, p in params.items()}
    if after_a_step:
        opt.step(good)
    before = {name: p.copy() for name, p in params.items()}
    state = {(s, name): opt.state[s][name].copy() for s in opt.state for name in params}
    with pytest.raises(ArrayError, match=message) as raised:
        opt.step({**good, "layer1.weight": gradient})
    assert "'layer1.weight'" in str(raised.value)
    for name, param in params.items():
        assert_same_bits(param, before[name])
        for s in opt.state:
            assert_same_bits(opt.state[s][name], state[s, name])
    assert opt.t == int(after_a_step)
    assert opt.step(good) is True  # and it goes on as if nothing had been


def test_a_float64_parameter_takes_float64_gradients_only():
    opt = Adam(np.ones(3), backend="numpy")
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        with pytest.raises(ArrayError, match=r"float64: convert it with gradient.astype\(parameter.dtype\)"):
            opt.step(np.ones(3, dtype))


@pytest.mark.parametrize("after_a_step", [False, True])
def test_gradients_that_share_memory_with_what_is_written(after_a_step):
    memory = np.zeros(16, F)
    params = [memory[:4], memory[4:8]]
    opt = Adam(params, backend="numpy")
    good = [np.ones(4, F), np.ones(4, F)]
    if after_a_step:
        opt.step(good)
    before = memory.copy()
    m = opt.state["m"]
    for gradients, names in [
        ([memory[:4], good[1]], "'0'"),
        ([memory[2:6], good[1]], "'0'"),
        ([good[0], memory[3:7]], "'1'"),
        ([memory[4:8], good[1]], "'0'.*'1'"),
        ([m[0], good[1]], "'0'"),
        ([good[0], m[0]], "'1'.*'0'"),
        ([params[0].view(F), good[1]], "'0'"),
    ]:
        with pytest.raises(ArrayError, match=rf"gradient of {names}.*copy"):
            opt.step(gradients)
        assert_same_bits(memory, before)
        assert opt.t == int(after_a_step)
    opt.step([memory[8:12], memory[12:16]])  # beside the parameters is fine


@pytest.mark.parametrize("after_a_step", [False, True])
def test_gradients_that_share_memory_with_what_another_launch_writes(after_a_step):
    memory = np.zeros(16)
    params = [memory[:4], np.ones(8, F)]  # two dtypes, two launches
    opt = Adam(params, backend="numpy")
    good = [np.ones(4), np.ones(8, F)]
    if after_a_step:
        opt.step(good)
    for gradients in ([good[0], memory[:4].view(F)], [good[0], opt.state["v"][0].view(F)]):
        with pytest.raises(ArrayError, match="gradient of '1' shares memory with the parameter '0'"):
            opt.step(gradients)
    assert opt.t == int(after_a_step)


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
@pytest.mark.parametrize("after_a_step", [False, True])
def test_a_gradient_over_a_parameter_that_has_none_is_refused_too(backend, after_a_step):
    params = [np.ones(4, F), np.ones(4, F)]
    opt = Adam(params, backend=backend)
    if after_a_step:  # then the launches of such a step are known
        opt.step([np.ones(4, F), None])
    # Which tensors a step writes is no reason to read a parameter as a gradient.
    for gradient in (params[1], opt.state["m"][1]):
        with pytest.raises(ArrayError, match="gradient of '0' shares memory with the parameter '1'"):
            opt.step([gradient, None])
    assert opt.t == int(after_a_step)


def test_parameters_given_twice_or_overlapping():
    a = np.ones(8, F)
    with pytest.raises(ArrayError, match="'0' and '1' are the same memory"):
        Adam([a, a], backend="numpy")
    with pytest.raises(ArrayError, match="'x' and 'z' are the same memory"):
        Adam({"x": a, "y": np.ones(3, F), "z": a[:]}, backend="numpy")
    with pytest.raises(ArrayError, match="'0' and '1' overlap"):
        Adam([a[:5], a[4:]], backend="numpy")
    with pytest.raises(ArrayError, match="'0' and '2' overlap"):
        Adam([a, np.ones(2, F), a[3:4]], backend="numpy")  # inside
    with pytest.raises(ArrayError, match="'0' and '3' overlap"):
        Adam([a, a[2:2], np.ones(2), a[7:]], backend="numpy")
    with pytest.raises(ArrayError, match="'0' and '1' are the same memory"):
        Adam([{"params": [a]}, {"params": [a.reshape(2, 4)], "lr": 0.1}], backend="numpy")
    with pytest.raises(ArrayError, match="overlap"):
        Adam([a, a.view(np.float64)[:2]], backend="numpy")  # another dtype over the same bytes
    opt = Adam([a[:4], a[4:], a[4:4], np.ones(0, F)], backend="numpy")  # neighbours and empty ones are fine
    opt.step([np.ones(4, F), np.ones(4, F), np.ones(0, F), np.ones(0, F)])
    assert a[3] == a[4] != 1.0


@pytest.mark.parametrize(
    ("params", "gradients", "message"),
    [
        ([np.ones(2, F)] * 1, [], "1 parameters, but 0 gradients"),
        ([np.ones(2, F)], [np.ones(2, F)] * 2, "1 parameters, but 2 gradients"),
        ([np.ones(2, F)], np.ones((1, 2), F), "list or tuple of as many, not a numpy.ndarray"),
        ([np.ones(2, F)], {"0": np.ones(2, F)}, "not a dict"),
        ([np.ones(2, F)], None, "not a NoneType"),
        ([np.ones(2, F)], (g for g in [np.ones(2, F)]), "not a generator"),
        (np.ones(2, F), [np.ones(2, F)], "one array, not a list"),
        (np.ones(2, F), {"0": np.ones(2, F)}, "one array, not a dict"),
        ({"a": np.ones(2, F)}, [np.ones(2, F)], "mapping with the same names, not a list"),
        ({"a": np.ones(2, F)}, {}, "no gradient for 'a'"),
        (
            {"a": np.ones(2, F)},
            {"b": np.ones(2, F)},
            "no gradient for 'a'.*a gradient for 'b', but no such parameter",
        ),
        ({"a": np.ones(2, F)}, {"a": np.ones(2, F), "b": None, "c": None}, "a gradient for 'b' and 'c'"),
    ],
)
def test_gradients_laid_out_otherwise(params, gradients, message):
    arrays = (
        list(params.values())
        if isinstance(params, dict)
        else params
        if isinstance(params, list)
        else [params]
    )
    before = [p.copy() for p in arrays]
    opt = Adam(params, backend="numpy")
    with pytest.raises(ArrayError, match=message):
        opt.step(gradients)
    for param, kept in zip(arrays, before, strict=True):
        assert_same_bits(param, kept)
    assert opt.t == 0


def test_long_lists_of_missing_names_are_cut():
    params = {f"layer{i}": np.ones(1, F) for i in range(100)}
    opt = Adam(params, backend="numpy")
    with pytest.raises(ArrayError, match="and 90 more") as raised:
        opt.step({})
    assert len(str(raised.value)) < 300


def test_a_refused_dtype_leaves_a_mixed_set_untouched():
    # The first launch would be fine; the second is not.
    params = [np.ones(3, F), np.ones(3)]
    opt = Adam(params, backend="numpy")
    opt.step([np.ones(3, F), np.ones(3)])
    before = [p.copy() for p in params]
    with pytest.raises(ArrayError, match=re.escape("gradient of '1'")):
        opt.step([np.ones(3, F), np.ones(4)])
    for param, kept in zip(params, before, strict=True):
        assert_same_bits(param, kept)
    assert opt.t == 1


def test_errors_are_one_tree():
    with pytest.raises(SolvergenError):
        Adam(1.0, backend="numpy")
    with pytest.raises(ValueError, match="is a float"):
        Adam(1.0, backend="numpy")


@pytest.mark.parametrize("dtypes", [("float32", "float64"), ("bfloat16", "float16"), ("float32", "float32")])
@pytest.mark.parametrize("backend", ["numpy", "cpu", "cpu without direct reading", "ptx"])
def test_a_parameter_that_was_made_read_only(backend, dtypes, monkeypatch):
    """Every backend finds it before anything changes, in any launch, and goes on when it is undone."""
    name, *indirect = backend.split(maxsplit=1)
    if (reason := why_unavailable(name)) is not None:
        pytest.skip(reason)
    if indirect:
        monkeypatch.setattr(library(), "head", 0)
    params = {f"{dtype}{i}": np.ones(40, dtype) for dtype in dtypes for i in range(20)}
    gradients = {name: np.full(40, 0.5, array.dtype) for name, array in params.items()}
    opt = solvergen.optimizers.Adam(params, backend=name)
    opt.step(gradients)
    before = {name: array.copy() for name, array in params.items()}
    frozen = params[f"{dtypes[1]}17"]
    frozen.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ArrayError, match=r"'.*17' has been made read-only; nothing was changed"):
            opt.step(gradients)
    for name, array in params.items():
        assert_same_bits(array, before[name])
    assert opt.t == 1
    assert opt.step({**gradients, f"{dtypes[1]}17": None})  # which it isn't written for
    frozen.flags.writeable = True
    assert opt.step(gradients)
    assert not np.array_equal(frozen, before[f"{dtypes[1]}17"])
