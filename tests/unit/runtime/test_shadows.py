"""Copies of the parameters in a second type: ``Wrappers(shadow=...)``."""

from __future__ import annotations

import warnings
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from generated import LAMB, SGD, Adafactor, Adam
from solvergen.constraints import MaxNorm, MinMax, MinMaxNorm, NonNegative, UnitNorm
from solvergen.errors import ArrayError, HyperparameterError, OptimizerError
from solvergen.runtime.row_sparse import RowSparse
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
DTYPES = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)
SHADOW = Wrappers(shadow="bfloat16")


def copy_of(param, name):
    """By way of float32, as torch's ``to`` does it."""
    with np.errstate(all="ignore"):
        return param.astype(F).astype(DTYPES[name])


def parameters(dtype, seed=0):
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        ties = (1 + np.arange(-64, 64) / 256).astype(np.float64)  # halfway between neighbours in bfloat16
        special = np.array([np.nan, np.inf, -0.0, 3e38, -1e-40, 1e-45, 65519.0, 65520.0, 2.0**-25, 3e-8])
        return {
            "w": rng.normal(size=(7, 37)).astype(dtype),
            "view": rng.normal(size=700).astype(dtype)[3:641],
            "special": np.concatenate([special, ties, -ties * 2.0**-20]).astype(dtype),
        }


@every_backend
class TestTheCopy:
    @pytest.mark.parametrize("shadow", ["bfloat16", "float16"])
    @pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
    def test_it_is_the_parameter_in_the_other_type(self, backend, dtype, shadow):
        params = parameters(dtype)
        opt = Adam(params, lr=0.0, backend=backend, wrappers=Wrappers(shadow=shadow))
        live = dict(opt.shadows)
        with np.errstate(all="ignore"):
            for scale in (None, 0.0, 1e-3):
                if scale is not None:
                    opt.lr = scale
                    opt.step({name: param.copy() for name, param in params.items()})
                for name, param in params.items():
                    assert opt.shadows[name] is live[name]
                    assert_same_bits(opt.shadows[name], copy_of(param, shadow))

    def test_as_torch_rounds(self, backend):
        torch = pytest.importorskip("torch")
        params = parameters(np.float64, 1)
        del params["special"]
        for shadow in DTYPES:
            opt = SGD(params, lr=0.1, backend=backend, wrappers=Wrappers(shadow=shadow))
            opt.step({name: param.copy() for name, param in params.items()})
            for name, param in params.items():
                expected = torch.from_numpy(param).to(getattr(torch, shadow)).view(torch.int16).numpy()
                np.testing.assert_array_equal(opt.shadows[name].view(np.int16), expected)

    def test_the_rule_keeps_its_bits(self, backend):
        one, other = parameters(F, 2), parameters(F, 2)
        plain = LAMB(one, lr=0.1, backend=backend)
        opt = LAMB(other, lr=0.1, backend=backend, wrappers=SHADOW)
        for step in range(2):
            gradients = parameters(F, 3 + step)
            plain.step(gradients)
            opt.step(gradients)
        for name in one:
            assert_same_bits(one[name], other[name])

    def test_it_comes_after_bounds_and_after_a_function_that_constrains(self, backend):
        param = np.array([3.0, -3.0, 0.5], F)
        opt = SGD([param], lr=0.0, backend=backend, wrappers=replace(SHADOW, bounds=(-1, 1), average=0.5))
        live = opt.shadows[0]

        def halved(name, array):
            np.testing.assert_array_equal(opt.shadows[0].astype(F), [1, -1, 0.5])
            array *= 0.5

        opt.constraint = halved
        opt.step([np.zeros(3, F)])
        np.testing.assert_array_equal(param, [0.5, -0.5, 0.25])
        np.testing.assert_array_equal(live.astype(F), param)
        param[:] = 7.0
        opt.refresh_shadows()
        np.testing.assert_array_equal(live.astype(F), param)

    @pytest.mark.parametrize("shadow", ["bfloat16", "float16"])
    @pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
    def test_constraints_are_in_it(self, backend, dtype, shadow):
        params = {**parameters(dtype), "kernel": parameters(dtype, 3)["view"].reshape(2, 11, 29)}
        params |= {"number": np.array(0.3, dtype), "empty": np.zeros((0, 3), dtype)}
        opt = Adam(params, lr=0.1, backend=backend, wrappers=Wrappers(shadow=shadow))
        opt.constraint = {
            "w": MaxNorm(0.3),
            "view": UnitNorm(),
            "special": MinMax(None, 1.5),
            "kernel": MinMaxNorm(0.1, 0.2, rate=0.5, axis=-1),
            "number": NonNegative(),
            "empty": MaxNorm(),
        }
        opt.step({name: param.copy() for name, param in params.items()})
        for name, param in params.items():
            assert_same_bits(opt.shadows[name], copy_of(param, shadow))

    def test_constraints_that_are_left_out_leave_it(self, backend):
        param = np.array([3.0, -3.0, 0.5], F)
        opt = SGD({"w": param}, lr=0.1, backend=backend, wrappers=SHADOW, nonfinite="skip")
        for constraint in (MaxNorm(0.1), lambda name, array: array.fill(0)):
            opt.constraint = constraint
            opt.shadows["w"][:] = 9.0
            opt.step({"w": np.ones(3, F)}, found_inf=True)
            opt.step({"w": np.ones(3, F)}, found_inf=np.ones(1, F))
            opt.step({"w": np.full(3, np.nan, F)})
            np.testing.assert_array_equal(opt.shadows["w"].astype(F), [9.0, 9.0, 9.0])

    def test_only_of_what_was_updated_whatever_the_function_raises(self, backend):
        params = {name: np.ones(3, F) for name in ("a", "b", "c")}
        opt = SGD(params, lr=0.0, backend=backend, wrappers=SHADOW)

        def failing(name, array):
            array[:] = 5.0
            if name == "b":
                raise ZeroDivisionError

        opt.constraint = failing
        params["c"][:] = 2.0
        with pytest.raises(ZeroDivisionError):
            opt.step({"a": np.ones(3, F), "b": np.ones(3, F), "c": None})
        found = {name: opt.shadows[name].astype(F).tolist() for name in params}
        assert found == {"a": [5.0] * 3, "b": [5.0] * 3, "c": [1.0] * 3}

    def test_constraints_know_the_arrays_that_took_their_place(self, backend):
        param = np.array([3.0, -4.0], F)
        opt = SGD({"w": param}, lr=0.0, backend=backend, wrappers=SHADOW)
        opt.constraint = UnitNorm()
        own = np.zeros(2, ml_dtypes.bfloat16)
        opt.shadows = {"w": own}
        opt.step({"w": np.ones(2, F)})
        assert_same_bits(own, copy_of(param, "bfloat16"))
        assert abs(param[0]) < 1
        opt.constraint = lambda name, array: array.fill(0.5)
        opt.step({"w": np.ones(2, F)})
        assert own.astype(F).tolist() == [0.5, 0.5]

    def test_of_rows_and_of_rules_with_lines(self, backend):
        rng = np.random.default_rng(4)
        table = rng.normal(size=(50, 6)).astype(F)
        opt = Adam([table], lr=0.1, backend=backend, wrappers=SHADOW)
        opt.step([RowSparse(np.array([3, 40, 3]), rng.normal(size=(3, 6)).astype(F))])
        assert_same_bits(opt.shadows[0], copy_of(table, "bfloat16"))
        opt = Adafactor([table], lr=0.1, backend=backend, wrappers=SHADOW)
        opt.step([rng.normal(size=(50, 6)).astype(F)])
        assert_same_bits(opt.shadows[0], copy_of(table, "bfloat16"))

    def test_groups_may_differ(self, backend):
        a, b, c = (np.ones(5, F) for _ in range(3))
        groups = [
            {"params": {"a": a}},
            {"params": {"b": b}, "wrappers": Wrappers(shadow="float16")},
            {"params": {"c": c}, "wrappers": Wrappers()},
        ]
        opt = SGD(groups, lr=0.3, backend=backend, wrappers=SHADOW)
        opt.step({name: np.ones(5, F) for name in "abc"})
        assert sorted(opt.shadows) == ["a", "b"]
        assert_same_bits(opt.shadows["a"], copy_of(a, "bfloat16"))
        assert_same_bits(opt.shadows["b"], copy_of(b, "float16"))

    def test_what_is_left_alone_keeps_its_copy(self, backend):
        params = {"a": np.ones(3, F), "b": np.ones(3, F)}
        opt = SGD(params, lr=0.5, backend=backend, wrappers=SHADOW)
        opt.shadows["b"][...] = 7
        opt.step({"a": np.ones(3, F), "b": None})
        np.testing.assert_array_equal(opt.shadows["a"].astype(F), 0.5)
        np.testing.assert_array_equal(opt.shadows["b"].astype(F), 7)


@every_backend
class TestArraysOfOnesOwn:
    def test_they_take_the_place(self, backend):
        params = {"a": np.ones(300, F), "b": np.full(3, 2, F)}
        opt = SGD(params, lr=0.5, backend=backend, wrappers=replace(SHADOW, accumulate=2))
        own = np.zeros(310, ml_dtypes.bfloat16)[3:303]
        opt.step({name: np.ones_like(param) for name, param in params.items()})
        opt.shadows = {"a": own}
        assert opt.shadows["a"] is own
        np.testing.assert_array_equal(own.astype(F), 1)
        opt.step({name: np.ones_like(param) for name, param in params.items()})
        np.testing.assert_array_equal(own.astype(F), 0.5)
        np.testing.assert_array_equal(opt.shadows["b"].astype(F), 1.5)

    def test_what_cant_be_used(self, backend):
        param = np.ones(4, F)
        opt = SGD({"a": param}, lr=0.5, backend=backend, wrappers=SHADOW)
        half = np.zeros(4, ml_dtypes.bfloat16)
        for wrong, what in (
            (np.zeros(4, np.float16), r"float16\(4,\); it must be bfloat16\(4,\)"),
            (half[:3], r"bfloat16\(3,\); it must be bfloat16\(4,\)"),
            (param.view(ml_dtypes.bfloat16)[:4], "share memory"),
            ([0.0] * 4, "the array for the copy of 'a' is a list"),
        ):
            with pytest.raises(ArrayError, match=what):
                opt.shadows = {"a": wrong}
        with pytest.raises(OptimizerError, match="no copy of '0'; copies are of 'a'"):
            opt.shadows = {0: half}
        listed = SGD([np.ones(4, F)], lr=0.1, backend="numpy", wrappers=SHADOW)
        listed.shadows = {0: half}
        assert listed.shadows[0] is half
        with pytest.raises(OptimizerError, match="no copy of 'c'; copies are of 'a'"):
            opt.shadows = {"c": half}
        with pytest.raises(OptimizerError, match="a mapping"):
            opt.shadows = [half]


class TestSettings:
    def test_it_is_in_the_configuration(self):
        opt = SGD([np.ones(3, F)], backend="numpy", wrappers=Wrappers(shadow="float16"))
        again = SGD.from_config([np.ones(3, F)], opt.get_config())
        assert again.wrappers.shadow == "float16"
        assert Wrappers.from_config(SHADOW.get_config()) == SHADOW

    def test_what_is_refused(self):
        with pytest.raises(HyperparameterError, match="shadow must be 'bfloat16' or 'float16', not 'float8'"):
            Wrappers(shadow="float8")
        opt = SGD([np.ones(3, F)], backend="numpy", wrappers=Wrappers())
        with pytest.raises(OptimizerError, match="keeps no copy"):
            opt.shadows  # noqa: B018
        with pytest.raises(HyperparameterError, match="differ in shadow from those that are compiled in"):
            opt.wrappers = SHADOW

    @pytest.mark.parametrize("suffix", ["h5", "safetensors"])
    def test_no_snapshot_has_it_and_loading_makes_it_anew(self, tmp_path, suffix):
        rng = np.random.default_rng(5)
        param = rng.normal(size=40).astype(F)
        opt = Adam({"w": param}, lr=0.1, backend="numpy", wrappers=SHADOW)
        opt.step({"w": param.copy()})
        path = tmp_path / f"s.{suffix}"
        opt.save(path)
        assert "wrap_bfloat16" not in opt.state_dict()["tensors"]["w"]["arrays"]
        for wrappers in (SHADOW, Wrappers(shadow="float16"), Wrappers()):
            other = Adam({"w": np.zeros(40, F)}, backend="numpy", wrappers=wrappers)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                other.load(path)
            assert_same_bits(other.params["w"], param)
            if wrappers.shadow:
                assert_same_bits(other.shadows["w"], copy_of(param, wrappers.shadow))

    def test_from_a_snapshot_of_the_rule_alone(self, tmp_path):
        param = np.full(3, 0.1, F)
        Adam({"w": param}, backend="numpy").save(tmp_path / "s.h5")
        opt = Adam({"w": np.zeros(3, F)}, backend="numpy", wrappers=SHADOW)
        opt.load(tmp_path / "s.h5")
        assert_same_bits(opt.shadows["w"], copy_of(param, "bfloat16"))
        opt.load(tmp_path / "s.h5", params=False)
