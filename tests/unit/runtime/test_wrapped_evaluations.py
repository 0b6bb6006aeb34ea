"""Wrappers around rules that evaluate the gradient again: what is refused, what is undone, what is kept."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from generated import SAM, Extragradient, Heun, RK45Adaptive
from solvergen.errors import (
    ArrayError,
    HyperparameterError,
    NonfiniteGradient,
    OptimizerError,
    SnapshotWarning,
)
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import CLASSES, HOST_BACKENDS

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)
EVALUATING = sorted(name for name, cls in CLASSES.items() if cls.definition.evaluations)
SOME = Wrappers(
    clip_value=2, clip_tensor_norm=4, clip_grad_norm=3, l2=0.1, weight_decay=0.1, bounds=(-3, 3), average=0.5
)


def start(dtypes=(F, np.float64)):
    rng = np.random.default_rng(2)
    return {f"p{i}": rng.normal(size=(4, 70)).astype(dtype) for i, dtype in enumerate(dtypes)}


def slopes(params):
    return {name: np.asarray(p * abs(p) + 1).astype(p.dtype) for name, p in params.items()}


class Problem:
    """A function for ``step``, with new arrays at each call. ``seen`` and ``given`` have what it was at and
    what it returned; ``change`` may change what the call of that number in a step returns."""

    def __init__(self, params):
        self.params = params
        self.seen, self.given, self.change = [], [], {}

    def __call__(self):
        self.seen.append({name: p.copy() for name, p in self.params.items()})
        found = slopes(self.params)
        self.given.append(found)
        change = self.change.get(len(self.given))
        if change is not None:
            change(found)
        return 0.0, found


def everything_of(opt):
    kept = {f"{name} of {n}": np.array(a) for name in opt.state for n, a in opt.state[name].items()}
    kept |= {name: np.array(value) for name, value in opt.shared.items()}
    return kept | {name: np.array(p) for name, p in opt.params.items()} | {"t": np.array(opt.t)}


def expect_same(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert_same_bits(found[name], array)


class TestAccumulation:
    @pytest.mark.parametrize("rule", EVALUATING)
    def test_there_is_none(self, rule):
        cls = CLASSES[rule]
        words = rf"{cls.__name__} evaluates the gradient several times .* accumulate=3 .* evaluate 3 batches"
        with pytest.raises(OptimizerError, match=words):
            cls(start(), backend="numpy", wrappers=Wrappers(accumulate=3))
        groups = [{"params": start(), "wrappers": Wrappers(accumulate=3)}]
        with pytest.raises(OptimizerError, match=words):
            cls(groups, backend="numpy")

    def test_it_can_not_begin(self):
        opt = SAM(start(), backend="numpy", wrappers=Wrappers(l2=0.1))
        with pytest.raises(OptimizerError, match="SAM evaluates the gradient several times"):
            opt.wrappers = Wrappers(accumulate=2)
        with pytest.raises(HyperparameterError, match="doesn't accumulate: sum gradients up in the function"):
            opt.wrap_every = 2
        assert opt.wrappers == Wrappers(l2=0.1)
        assert opt.pending == 0
        assert not opt.flush()

    def test_what_would_be_done_with_calls_says_nothing(self):
        opt = Heun(start(), backend="numpy", wrappers=Wrappers(accumulation="sum", order="caffe"))
        assert opt.wrappers == Wrappers(accumulation="sum", order="caffe")

    def test_gradients_instead_of_a_function(self):
        of = start()
        opt = Heun(of, backend="numpy", wrappers=SOME)
        with pytest.raises(
            OptimizerError, match=r"^Heun evaluates the gradient several times.*\(loss, gradients\)"
        ):
            opt.step(of)


@every_backend
class TestUndoing:
    @pytest.mark.parametrize("call", [1, 2])
    def test_what_the_function_raises(self, backend, call):
        of = start((F, np.float64, np.float16))
        opt = SAM(of, lr=0.1, backend=backend, wrappers=SOME)
        problem = Problem(of)
        opt.step(problem)
        before = everything_of(opt)

        def trouble(found):
            raise ZeroDivisionError

        problem.change = {2 + call: trouble}
        with pytest.raises(ZeroDivisionError):
            opt.step(problem)
        expect_same(everything_of(opt), before)

    @pytest.mark.parametrize("call", [1, 2])
    def test_steps_that_are_left_out(self, backend, call):
        of = start()
        opt = Extragradient(of, lr=0.1, backend=backend, wrappers=SOME, nonfinite="skip")
        problem = Problem(of)
        opt.step(problem)
        before = everything_of(opt)
        problem.change = {2 + call: lambda found: found["p1"].__setitem__((2, 3), np.inf)}
        opt.step(problem)
        expect_same(everything_of(opt), before)
        opt.nonfinite = "raise"
        problem.change = {len(problem.given) + call: lambda found: found["p0"].__setitem__((0, 0), np.nan)}
        with pytest.raises(NonfiniteGradient, match="p0"):
            opt.step(problem)
        expect_same(everything_of(opt), before)

    def test_a_step_that_the_rule_does_not_take(self, backend):
        of = start((np.float64,))
        wrappers = Wrappers(weight_decay=0.5, clip_value=3, average=0.5, write_update=True)
        opt = RK45Adaptive(of, lr=0.25, tolerance=1e-14, backend=backend, wrappers=wrappers)
        before = of["p0"].copy()
        problem = Problem(of)
        opt.step(problem)
        assert opt.shared["error"] > 1e-14
        # It has come to nothing, with the decay and the average around it.
        decayed = (1 - 0.25 * 0.5) * before
        assert_same_bits(of["p0"], decayed)
        assert_same_bits(opt.averages["p0"], 0.5 * before + 0.5 * decayed)
        assert not problem.given[-1]["p0"].any()


@every_backend
class TestWrittenUpdates:
    @pytest.mark.parametrize("rule", ["heun", "sam"])
    @pytest.mark.parametrize("dtype", [F, np.float16])
    def test_the_difference_of_the_whole_step(self, backend, rule, dtype):
        of, others = start((dtype,)), start((dtype,))
        before = of["p0"].astype(F)
        opt = CLASSES[rule](
            of, lr=0.1, backend=backend, wrappers=Wrappers(write_update=True, bounds=(-0.25, 0.25))
        )
        plain = CLASSES[rule](others, lr=0.1, backend="numpy")
        problem = Problem(of)
        opt.step(problem)
        plain.step(Problem(others))
        first, last = problem.given
        assert_same_bits(last["p0"], (before - others["p0"].astype(F)).astype(dtype))
        assert_same_bits(first["p0"], slopes(problem.seen[0])["p0"])
        assert abs(of["p0"]).max() == 0.25

    @pytest.mark.parametrize("call", [1, 2])
    def test_an_array_that_can_not_be_written(self, backend, call):
        of = start()
        opt = Heun(of, backend=backend, wrappers=Wrappers(write_update=True, average=0.5))
        before = everything_of(opt)
        problem = Problem(of)
        problem.change = {call: lambda found: found["p1"].setflags(write=False)}
        with pytest.raises(ArrayError, match=r"the gradient of 'p1', which the update is to be written to"):
            opt.step(problem)
        expect_same(everything_of(opt), before)

    def test_arrays_that_meet_in_a_later_evaluation(self, backend):
        of = start((F, F))
        opt = Heun(of, backend=backend, wrappers=Wrappers(write_update=True))
        before = everything_of(opt)
        problem = Problem(of)
        problem.change = {2: lambda found: found.update(p1=found["p0"])}
        with pytest.raises(ArrayError, match=r"evaluation 2 of the step: .*'p0' and 'p1' share memory"):
            opt.step(problem)
        expect_same(everything_of(opt), before)


class TestKeeping:
    @pytest.mark.parametrize("rule", ["sam", "rk45_adaptive"])
    def test_it_goes_on_to_the_bit(self, rule, tmp_path):
        of, fresh = start(), start()
        opt = CLASSES[rule](of, lr=0.1, backend="numpy", wrappers=SOME)
        for _ in range(2):
            opt.step(Problem(of))
        opt.save(tmp_path / "s.h5")
        again = CLASSES[rule](fresh, lr=0.3, backend="numpy", wrappers=SOME)
        again.step(Problem(fresh))
        again.load(tmp_path / "s.h5")
        for _ in range(2):
            opt.step(Problem(of))
            again.step(Problem(fresh))
        expect_same(everything_of(again), everything_of(opt))
        config = json.loads(json.dumps(opt.get_config()))
        assert CLASSES[rule].from_config(start(), config).get_config() == opt.get_config()

    def test_snapshots_of_the_rule_alone_and_for_it(self, tmp_path):
        of, fresh, third = start(), start(), start()
        plain = SAM(of, lr=0.1, backend="numpy")
        plain.step(Problem(of))
        plain.save(tmp_path / "plain.h5")
        opt = SAM(fresh, lr=0.1, backend="numpy", wrappers=SOME)
        opt.load(tmp_path / "plain.h5")
        assert opt.t == 1
        assert opt.wrappers == SOME
        for name, param in of.items():
            assert_same_bits(opt.averages[name], param)
        opt.save(tmp_path / "wrapped.h5")
        back = SAM(third, backend="numpy")
        with pytest.warns(SnapshotWarning, match="wrappers, which are left out, and with them wrap_average"):
            back.load(tmp_path / "wrapped.h5")
        expect_same(everything_of(back), everything_of(plain))

    def test_changing_them(self):
        of = start()
        opt = SAM([{"params": of, "decay_mult": 2}], backend="numpy", wrappers=Wrappers(l2=0.1))
        opt.wrappers = replace(opt.wrappers, unscale=4)
        assert opt.groups[0].effective()["wrap_l2"] == 0.2
        with pytest.raises(
            HyperparameterError, match="differ in clip_grad_norm from those that are compiled in"
        ):
            opt.wrappers = Wrappers(clip_grad_norm=1)


def test_the_norm_is_that_of_the_last_evaluation():
    of = start()
    opt = Heun(of, lr=0.1, backend="numpy", wrappers=Wrappers(clip_grad_norm=1e9))
    problem = Problem(of)
    opt.step(problem)
    wanted = np.sqrt(sum((g.astype(np.float64) ** 2).sum() for g in problem.given[-1].values()))
    assert opt.clip_norm == pytest.approx(wanted, rel=1e-12)


def test_frozen_parameters_stay():
    of = start()
    opt = SAM(of, lr=0.1, backend="numpy", wrappers=SOME)
    opt.freeze("p0")
    before = of["p0"].copy()
    opt.step(Problem(of))
    assert_same_bits(of["p0"], before)
    assert opt.steps == {"p0": 0, "p1": 1}
