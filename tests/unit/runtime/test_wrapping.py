"""Optimizers with wrappers: how they are made, changed, kept and described."""

from __future__ import annotations

import json
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from generated import SGD, Adam, AdamW, Rprop
from generated.adam.wrapped import WrappedAdam
from solvergen.errors import (
    HyperparameterError,
    OptimizerError,
    SnapshotMismatch,
    SnapshotWarning,
    UnknownAttribute,
)
from solvergen.runtime.wrappers import Wrappers, wrapper_hyperparameters
from tests.support.bits import assert_same_bits
from tests.support.handwritten import Adam as HandwrittenAdam

F = np.float32


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def params(rng):
    return {"w": rng.normal(size=(3, 4)).astype(F), "b": rng.normal(size=5).astype(F)}


def gradients(rng, of):
    return {name: rng.normal(size=array.shape).astype(F) for name, array in of.items()}


def copies(of):
    return {name: array.copy() for name, array in of.items()}


def made(of, wrappers=None, **settings):
    return Adam(of, lr=0.01, backend="numpy", wrappers=wrappers, **settings)


EVERYTHING = Wrappers(
    accumulate=2, unscale=8, clip_value=0.9, clip_tensor_norm=1.5, clip_grad_norm=1, clip_eps=1e-6,
    l1=0.001, l2=0.002, weight_decay=0.1, bounds=(-1.5, 1.5), average=0.9,
)  # fmt: skip


class TestMaking:
    def test_the_class_is_another_of_the_same_kind(self, rng):
        opt = made(params(rng), Wrappers(l2=0.1))
        assert type(opt) is WrappedAdam
        assert isinstance(opt, Adam)
        assert opt.wrappers == Wrappers(l2=0.1)
        assert opt.lr == 0.01
        assert type(made(params(rng))) is Adam

    def test_without_wrappers_said_there_are_none(self, rng):
        of = params(rng)
        assert WrappedAdam(of, lr=0.1, backend="numpy").wrappers == Wrappers()

    @pytest.mark.parametrize("dtype", [F, np.float64, ml_dtypes.bfloat16, np.float16])
    def test_wrappers_that_say_nothing_change_no_bit(self, rng, dtype):
        specials = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-30, 3.0])
        a = {"x": rng.normal(size=7).astype(dtype), "y": specials.astype(dtype)}
        b = copies(a)
        one, other = made(a), made(b, Wrappers())
        for _ in range(3):
            grads = {name: rng.normal(size=7).astype(dtype) for name in a}
            grads["x"][:6] = specials[:6].astype(dtype)
            one.step(grads)
            other.step(grads)
        for name in a:
            assert_same_bits(a[name], b[name])
            assert_same_bits(one.state["exp_avg_sq"][name], other.state["exp_avg_sq"][name])

    @pytest.mark.parametrize("wrong", [{}, {"l2": 1}, True, "clip"])
    def test_other_things_than_wrappers(self, rng, wrong):
        with pytest.raises(HyperparameterError, match=r"wrappers must be solvergen.Wrappers"):
            made(params(rng), wrong)
        with pytest.raises(HyperparameterError, match=r"'wrappers' in params\[0\]"):
            made([{"params": params(rng), "wrappers": wrong}])

    def test_a_class_of_ones_own(self, rng):
        class Mine(Adam):
            pass

        with pytest.raises(OptimizerError, match="Mine is no generated class, but derived from one"):
            Mine(params(rng), wrappers=Wrappers())

    def test_a_package_that_was_built_without(self, rng):
        with pytest.raises(OptimizerError, match="Adam was built without wrappers: run solvergen build"):
            HandwrittenAdam.__new__(HandwrittenAdam, params(rng), wrappers=Wrappers())

    def test_decay_by_a_rate_that_there_is_not(self):
        without = replace(
            WrappedAdam.definition,
            hyperparameters=tuple(
                h for h in WrappedAdam.definition.hyperparameters if h.name not in ("lr", "wrap_weight_decay")
            ),
        )
        with pytest.raises(HyperparameterError, match="Adam has no lr for decoupled weight decay"):
            wrapper_hyperparameters(Wrappers(weight_decay=0.1), without)
        assert wrapper_hyperparameters(Wrappers(l2=0.1), without)["wrap_l2"] == 0.1

    def test_maximising_twice(self, rng):
        with pytest.raises(HyperparameterError, match="maximize is given twice, to Adam and"):
            made(params(rng), Wrappers(maximize=True), maximize=True)
        made(params(rng), Wrappers(maximize=True))

    def test_text(self, rng):
        opt = made(params(rng), Wrappers(clip_grad_norm=1, l2=0.1))
        assert repr(opt) == (
            "Adam(lr=0.01, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.0, amsgrad=False, "
            "maximize=False, wrappers=Wrappers(clip_grad_norm=1.0, l2=0.1), backend='numpy', "
            "tensors=2, elements=17, t=0)"
        )


class TestChanging:
    def test_what_costs_nothing(self, rng):
        opt = made(params(rng), Wrappers(unscale=4))
        opt.wrappers = replace(opt.wrappers, unscale=2, l1=0.5, bounds=(None, 1))
        assert opt.wrappers == Wrappers(unscale=2, l1=0.5, bounds=(None, 1))
        opt.wrap_unscale = 16
        assert opt.wrappers.unscale == 16

    def test_what_is_compiled_in(self, rng):
        opt = made(params(rng), Wrappers(clip_grad_norm=4))
        opt.wrappers = Wrappers(clip_grad_norm=2)
        for other in (Wrappers(), Wrappers(clip_grad_norm=2, average=0.9)):
            with pytest.raises(HyperparameterError, match="make a new optimizer with them"):
                opt.wrappers = other
        assert opt.wrappers == Wrappers(clip_grad_norm=2)

    def test_calls_a_step(self, rng):
        opt = made(params(rng), Wrappers(accumulate=2))
        opt.wrappers = Wrappers(accumulate=1)
        opt.wrappers = Wrappers(accumulate=5)
        assert opt.wrap_every == 5
        plain = made(params(rng), Wrappers())
        with pytest.raises(HyperparameterError, match="differ in accumulate from"):
            plain.wrappers = Wrappers(accumulate=2)
        with pytest.raises(HyperparameterError, match="can't begin to accumulate"):
            plain.wrap_every = 2

    def test_other_things(self, rng):
        opt = made(params(rng), Wrappers())
        with pytest.raises(HyperparameterError, match=r"solvergen\.Wrappers"):
            opt.wrappers = {"l2": 1}
        with pytest.raises(UnknownAttribute, match="wrap_l3"):
            opt.wrap_l3 = 1


class TestGroups:
    def test_wrappers_of_their_own(self, rng):
        of = params(rng)
        base = Wrappers(clip_grad_norm=1, l2=0.1)
        opt = made(
            [{"params": {"w": of["w"]}}, {"params": {"b": of["b"]}, "wrappers": replace(base, l2=0)}], base
        )
        assert [group.wrap_l2 for group in opt.groups] == [0.1, 0]
        with pytest.raises(OptimizerError, match="groups have different wrappers"):
            _ = opt.wrappers
        assert "wrappers=<by group>" in repr(opt)
        opt.groups[1].wrap_l2 = 0.1
        assert opt.wrappers == base

    def test_they_make_the_optimizer_a_wrapped_one(self, rng):
        of = params(rng)
        opt = made([{"params": of["w"]}, {"params": of["b"], "wrappers": Wrappers(bounds=(-0.1, 0.1))}])
        opt.step([np.ones((3, 4), F), np.ones(5, F)])
        assert abs(of["b"]).max() == F(0.1)
        assert abs(of["w"]).max() > 0.5

    @pytest.mark.parametrize(
        ("base", "own", "what"),
        [
            ({"accumulate": 2}, {"accumulate": 3}, "accumulate"),
            ({"accumulate": 2}, {}, "accumulate"),
            ({"accumulation": "sum"}, {}, "accumulation"),
            ({"order": "caffe"}, {}, "order"),
            ({"clip_grad_norm": 2}, {"clip_tensor_norm": 2}, "clip_grad_norm"),
            ({}, {"average": 0.5}, "average"),
        ],
    )
    def test_what_is_one_matter_of_all(self, rng, base, own, what):
        of = params(rng)
        groups = [{"params": of["w"]}, {"params": of["b"], "wrappers": Wrappers(**own)}]
        with pytest.raises(OptimizerError, match=rf"params\[0\] and params\[1\] differ in .* {what}"):
            made(groups, Wrappers(**base))

    def test_clipping_by_tensor_is_their_own_matter(self, rng):
        of = params(rng)
        groups = [{"params": of["w"], "wrappers": Wrappers(clip_tensor_norm=1)}, {"params": of["b"]}]
        assert [g.options["wrap_clip_tensor"] for g in made(groups).groups] == [True, False]

    def test_decay_mult(self, rng):
        of = [np.ones(3, F), np.ones(3, F)]
        opt = SGD(
            [{"params": of[0], "decay_mult": 0}, {"params": of[1], "decay_mult": 2, "lr_mult": 0.5}],
            lr=0.5,
            backend="numpy",
            wrappers=Wrappers(weight_decay=0.25),
        )
        opt.step([np.zeros(3, F)] * 2)
        assert of[0].tolist() == [1, 1, 1]
        assert of[1].tolist() == [1 - 0.25 * 0.5] * 3

    def test_a_rule_without_decay_has_decay_mult_with_wrappers(self, rng):
        assert "weight_decay" not in Rprop.definition.hyperparameter_names
        with pytest.raises(HyperparameterError, match="decay_mult would do nothing"):
            Rprop([{"params": np.ones(2, F), "decay_mult": 2}], backend="numpy")
        opt = Rprop([{"params": np.ones(2, F), "decay_mult": 2}], backend="numpy", wrappers=Wrappers(l1=1))
        assert opt.groups[0].effective()["wrap_l1"] == 2


class TestKeeping:
    def test_configuration(self, rng):
        of = params(rng)
        groups = [
            {"params": {"w": of["w"]}},
            {"params": {"b": of["b"]}, "wrappers": replace(EVERYTHING, l2=0), "decay_mult": 3},
        ]
        opt = made(groups, EVERYTHING)
        config = json.loads(json.dumps(opt.get_config()))
        for again in (Adam.from_config(copies(of), config), WrappedAdam.from_config(copies(of), config)):
            assert type(again) is WrappedAdam
            assert again.get_config() == opt.get_config()
        with pytest.raises(OptimizerError, match="configuration of 'wrapped_adam'"):
            AdamW.from_config(of, config)
        with pytest.raises(OptimizerError, match="configuration of 'adam'"):
            WrappedAdam.from_config(of, made(params(rng)).get_config())

    @pytest.mark.parametrize("suffix", ["h5", "safetensors"])
    @pytest.mark.parametrize("after", [2, 3])
    def test_it_goes_on_to_the_bit(self, rng, tmp_path, suffix, after):
        of = params(rng)
        opt = made(of, EVERYTHING)
        steps = [gradients(rng, of) for _ in range(6)]
        steps[2]["b"] = None
        for grads in steps[:after]:
            opt.step(grads)
        path = tmp_path / f"s.{suffix}"
        opt.save(path)
        kept = opt.state_dict()
        fresh = params(np.random.default_rng(0))
        again = made(fresh, EVERYTHING)
        again.load(path)
        third = {name: array.copy() for name, array in of.items()}
        by_dict = made(third, EVERYTHING)
        by_dict.load_state_dict(kept)
        assert again.pending == by_dict.pending == opt.pending == after % 2
        for grads in steps[after:]:
            for one in (opt, again, by_dict):
                one.step(grads)
        assert opt.t == again.t == 3
        for name, array in of.items():
            assert_same_bits(fresh[name], array)
            assert_same_bits(third[name], array)
            assert_same_bits(again.averages[name], opt.averages[name])

    def test_a_snapshot_of_the_rule_alone(self, rng, tmp_path):
        of = params(rng)
        plain = made(of)
        plain.step(gradients(rng, of))
        plain.save(tmp_path / "s.h5")
        fresh = params(rng)
        opt = made(fresh, EVERYTHING)
        opt.step(gradients(rng, fresh))
        opt.load(tmp_path / "s.h5")
        assert opt.t == 1
        assert opt.pending == 0
        assert opt.wrappers == EVERYTHING
        for name, array in of.items():
            assert_same_bits(fresh[name], array)
            assert_same_bits(opt.state["exp_avg"][name], plain.state["exp_avg"][name])
            assert_same_bits(opt.averages[name], array)
            assert not opt.state["wrap_sum"][name].any()

    def test_without_its_parameters(self, rng):
        of = params(rng)
        plain = made(copies(of))
        plain.step(gradients(rng, of))
        opt = made(of, Wrappers(average=0.5))
        before = copies(of)
        opt.load_state_dict(plain.state_dict())
        for name, array in before.items():
            assert_same_bits(of[name], array)
            assert_same_bits(opt.averages[name], array)

    def test_a_snapshot_with_wrappers_into_the_rule_alone(self, rng, tmp_path):
        of = params(rng)
        opt = made(of, EVERYTHING)
        for _ in range(2):
            opt.step(gradients(rng, of))
        opt.save(tmp_path / "s.h5")
        fresh = params(rng)
        plain = made(fresh)
        with pytest.warns(SnapshotWarning, match="wrappers, which are left out, and with them wrap_average"):
            plain.load(tmp_path / "s.h5")
        assert plain.t == 1
        for name, array in of.items():
            assert_same_bits(fresh[name], array)
            assert_same_bits(plain.state["exp_avg"][name], opt.state["exp_avg"][name])

    def test_of_another_rule_or_of_other_tensors(self, rng):
        of = params(rng)
        opt = made(of, EVERYTHING)
        with pytest.raises(SnapshotMismatch, match="it is of the optimizer 'adamw'"):
            opt.load_state_dict(AdamW(copies(of), backend="numpy").state_dict())
        with pytest.raises(SnapshotMismatch, match="it is of the optimizer 'wrapped_adam'"):
            AdamW(copies(of), backend="numpy").load_state_dict(opt.state_dict())
        other = {"w": np.ones((3, 5), F), "c": np.ones(2, F)}
        with pytest.raises(SnapshotMismatch, match="not in it: 'b'"):
            opt.load_state_dict(made(other).state_dict())
        with pytest.raises(SnapshotMismatch, match="option 'wrap_accumulate' is True in it, False here"):
            made(copies(of), Wrappers(average=0.9)).load_state_dict(opt.state_dict())
