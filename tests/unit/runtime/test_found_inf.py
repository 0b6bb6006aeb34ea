"""Steps that a flag leaves out: ``opt.step(gradients, found_inf=flag)``."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generated import LAMB, SAM, SGD, Adafactor, Adam, AdamW, Prodigy, RAdam
from solvergen.errors import ArrayError, NonfiniteGradient, OptimizerError
from solvergen.runtime.row_sparse import RowSparse
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
SET, CLEAR = np.ones(1, F), np.zeros(1, F)
FLOATS, WHOLE = (F, np.float64, np.float16), (bool, np.uint8, np.int32, np.int64)
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def parameters(seed):
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(3, 50)).astype(F), "b": rng.normal(size=9).astype(F)}


def gradients(seed):
    return parameters(100 + seed)


def everything(opt):
    """All that a step may change, the host's part too."""
    kept = opt.state_dict()
    arrays = {
        f"{name} {state}": array
        for name, tensor in kept["tensors"].items()
        for state, array in tensor["arrays"].items()
    }
    arrays |= {name: np.array(array) for name, array in opt.params.items()}
    if opt.options.get("wrap_keep_bfloat16"):
        arrays |= {f"{name} copy": np.array(array) for name, array in opt.shadows.items()}
    numbers = {
        name: (tensor["t"], sorted(tensor["scalars"].items())) for name, tensor in kept["tensors"].items()
    }
    return arrays, numbers, kept.get("shared")


def assert_equal(one, other):
    assert one[0].keys() == other[0].keys()
    for name in one[0]:
        assert_same_bits(one[0][name], other[0][name])
    assert one[1:] == other[1:]


WRAPS = Wrappers(clip_grad_norm=1.0, average=0.9, shadow="bfloat16", weight_decay=0.1, write_update=True)
RULES = {
    "adamw": (AdamW, {}),
    "radam": (RAdam, {}),
    "lamb": (LAMB, {}),
    "prodigy": (Prodigy, {}),
    "adafactor": (Adafactor, {}),
    "wrapped adam": (Adam, {"wrappers": WRAPS}),
}


@every_backend
@pytest.mark.parametrize("name", RULES)
class TestAsIfTheStepHadNotBeen:
    def test_from_the_first_step_on(self, backend, name):
        rule, more = RULES[name]
        one, other = (rule(parameters(0), lr=0.01, backend=backend, **more) for _ in range(2))
        numbers = 0
        for flag in (1, 0, 1, 1, 0):
            given = gradients(numbers)
            if flag:
                given["w"][0, :3] = np.inf, -np.inf, np.nan
                before = {key: value.copy() for key, value in given.items()}
                one.step(given, found_inf=np.full(1, flag, F))
                for key in given:
                    assert_same_bits(given[key], before[key])
                continue
            same = {key: value.copy() for key, value in given.items()}
            assert one.step(given, found_inf=np.zeros((), F))
            assert other.step(same)
            numbers += 1
        assert one.t == other.t == 2
        assert_equal(everything(one), everything(other))

    def test_what_is_seen_right_after(self, backend, name):
        rule, more = RULES[name]
        opt = rule(parameters(0), lr=0.01, backend=backend, **more)
        opt.step(gradients(0), found_inf=CLEAR)
        before = everything(opt)
        steps = opt.steps
        opt.step(gradients(1), found_inf=SET)
        assert (opt.t, dict(steps), dict(opt.steps)) == (1, {"w": 1, "b": 1}, {"w": 1, "b": 1})
        opt.step(gradients(1), found_inf=SET)
        assert dict(opt.shared) == (before[2] or {})
        opt.step(gradients(1), found_inf=SET)
        assert_equal(everything(opt), before)


@every_backend
class TestFlags:
    @pytest.mark.parametrize(
        ("flag", "left_out"),
        [
            *((np.full((1, 1), value, dtype), bool(value)) for dtype in FLOATS for value in (0, 1)),
            *((np.full((), value, dtype), bool(value)) for dtype in WHOLE for value in (0, 1)),
            (np.array([1], ml_dtypes.bfloat16), True),
            (np.array([-0.0], F), False),
            (np.array([np.nan], F), True),
            (np.array([-1], np.int64), True),
            (np.array([2**40], np.int64), True),
            (np.arange(5, dtype=F)[1:2], True),
            (True, True),
            (False, False),
            (0.0, False),
            (np.bool_(True), True),
            (np.float32(1), True),
        ],
        ids=repr,
    )
    def test_of_every_kind(self, backend, flag, left_out):
        param = np.ones(3, F)
        opt = SGD([param], lr=0.5, backend=backend)
        opt.step([np.ones(3, F)], found_inf=flag)
        np.testing.assert_array_equal(param, 1.0 if left_out else 0.5)
        assert opt.t == (not left_out)

    def test_what_is_none(self, backend):
        opt = SGD([np.ones(3, F)], lr=0.5, backend=backend)
        for flag, why in (
            (np.ones(2, F), "one number .*not an array of 2"),
            (np.ones(0, F), "an array of 0"),
            (np.array(["x"]), "dtype <U1"),
            ([1.0], "is a list"),
            ("yes", "is a str"),
            # Kernels read the bytes as they lie, and at most eight of them.
            (np.ones(1, np.dtype(F).newbyteorder()), r"dtype >f4: pass bool\(x\)"),
            (np.array([-0.0], ">f8"), "dtype >f8"),
        ):
            with pytest.raises(ArrayError, match=why):
                opt.step([np.ones(3, F)], found_inf=flag)
        assert opt.t == 0

    @pytest.mark.skipif(np.dtype(np.longdouble).itemsize <= 8, reason="long doubles are doubles here")
    def test_more_than_64_bits_are_none(self, backend):
        opt = SGD([np.ones(3, F)], lr=0.5, backend=backend)
        for flag in (np.ones(1, np.longdouble), np.zeros(1, np.longdouble)):
            with pytest.raises(ArrayError, match=rf"of dtype {flag.dtype}: pass bool\(x\)"):
                opt.step([np.ones(3, F)], found_inf=flag)
        assert opt.t == 0
        assert opt.step([np.ones(3, F)], found_inf=np.longdouble(0))

    def test_functions_have_none(self, backend):
        opt = SGD([np.ones(3, F)], backend=backend)
        with pytest.raises(OptimizerError, match="not of those that a function evaluates: leave it out"):
            opt.step(lambda: (0.0, [np.ones(3, F)]), found_inf=CLEAR)
        opt = SAM([np.ones(3, F)], backend=backend)
        with pytest.raises(OptimizerError, match="as SAM asks for in a step"):
            opt.step([np.ones(3, F)], found_inf=CLEAR)

    def test_with_a_policy_for_gradients(self, backend):
        param = np.ones(3, F)
        opt = SGD([param], lr=0.5, backend=backend, nonfinite="raise")
        assert not opt.step([np.full(3, np.nan, F)], found_inf=SET)
        with pytest.raises(NonfiniteGradient):
            opt.step([np.full(3, np.nan, F)], found_inf=CLEAR)
        opt.nonfinite = "skip"
        assert not opt.step([np.full(3, np.nan, F)], found_inf=CLEAR)
        assert opt.step([np.ones(3, F)], found_inf=CLEAR)
        np.testing.assert_array_equal(param, 0.5)

    def test_a_constraint_isnt_called(self, backend):
        called = []
        opt = SGD({"w": np.ones(3, F)}, backend=backend)
        opt.constraint = lambda name, array: called.append(name)
        assert not opt.step({"w": np.ones(3, F)}, found_inf=SET)
        assert not called
        assert opt.step({"w": np.ones(3, F)}, found_inf=CLEAR)
        assert called == ["w"]

    def test_gradients_by_rows(self, backend):
        table = np.ones((6, 2), F)
        opt = Adam([table], lr=0.5, backend=backend)
        rows = RowSparse(np.array([1, 4, 1]), np.ones((3, 2), F))
        opt.step([rows], found_inf=SET)
        np.testing.assert_array_equal(table, 1)
        assert opt.t == 0
        opt.step([rows], found_inf=CLEAR)
        assert (table != 1).sum() == 4

    def test_some_tensors_alone(self, backend):
        """Which split the counts."""
        params = {"a": np.ones(2, F), "b": np.ones(2, F)}
        opt = RAdam(params, lr=0.5, backend=backend)
        opt.step({"a": np.ones(2, F), "b": None}, found_inf=CLEAR)
        opt.step({"a": None, "b": np.ones(2, F)}, found_inf=SET)
        opt.step({"a": np.ones(2, F), "b": None}, found_inf=SET)
        assert dict(opt.steps) == {"a": 1, "b": 0}


@every_backend
class TestAccumulation:
    def test_a_call_isnt_summed_up_or_counted(self, backend):
        wrappers = Wrappers(accumulate=3, average=0.5, shadow="bfloat16")
        one, other = (Adam(parameters(0), lr=0.1, backend=backend, wrappers=wrappers) for _ in range(2))
        done = 0
        for flag in (1, 0, 1, 0, 1, 1, 0, 1, 0):
            given = gradients(done)
            if flag:
                given["b"][:] = np.inf
                one.step(given, found_inf=SET)
                assert one.pending == other.pending
                continue
            one.step(given, found_inf=CLEAR)
            other.step(given)
            done += 1
            assert one.pending == other.pending == done % 3
        assert one.t == other.t == 1
        assert_equal(everything(one), everything(other))
        assert one.flush() == other.flush() is True
        assert_equal(everything(one), everything(other))


def test_as_torchs_fused_adamw_has_it():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(7)
    start = rng.normal(size=40).astype(F)
    theirs = torch.tensor(start.copy(), requires_grad=True)
    ours = start.copy()
    peer = torch.optim.AdamW([theirs], lr=0.05, weight_decay=0.1, fused=True)
    opt = AdamW([ours], lr=0.05, weight_decay=0.1, backend="numpy")
    for flag in (0.0, 1.0, 0.0, 1.0, 1.0, 0.0):
        gradient = rng.normal(size=40).astype(F)
        theirs.grad = torch.from_numpy(gradient.copy())
        peer.grad_scale, peer.found_inf = None, torch.tensor(flag)
        peer.step()
        opt.step([gradient], found_inf=peer.found_inf.numpy())
    assert opt.t == int(peer.state[theirs]["step"]) == 3
    np.testing.assert_allclose(ours, theirs.detach().numpy(), rtol=2e-6)
