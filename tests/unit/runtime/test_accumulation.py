"""Calls that only sum gradients up."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generated import SGD
from solvergen.errors import ArrayError, HyperparameterError, NonfiniteGradient, OptimizerError
from solvergen.runtime.wrappers import Wrappers
from tests.support.shipped import HOST_BACKENDS

F = np.float32

every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


def sgd(of, backend="numpy", lr=1.0, nonfinite="propagate", **wrappers):
    return SGD(of, lr=lr, backend=backend, nonfinite=nonfinite, wrappers=Wrappers(**wrappers))


def ones(n=3):
    return [np.zeros(n, F), np.zeros(2 * n, F)]


def grads(a, b, n=3):
    return [None if a is None else np.full(n, a, F), None if b is None else np.full(2 * n, b, F)]


class TestAccumulation:
    @every_backend
    def test_the_mean_of_the_calls(self, backend):
        of = ones()
        opt = sgd(of, backend, accumulate=4)
        for call in range(1, 10):
            assert opt.pending == (call - 1) % 4
            assert opt.step(grads(call, -call)) is True
            assert opt.t == call // 4
        # 1 + 2 + 3 + 4 and 5 + 6 + 7 + 8, each over 4
        assert of[0].tolist() == [-9.0] * 3
        assert of[1].tolist() == [9.0] * 6
        assert opt.state["wrap_sum"][0].tolist() == [9.0] * 3

    @every_backend
    def test_their_sum(self, backend):
        of = ones()
        opt = sgd(of, backend, accumulate=2, accumulation="sum")
        opt.step(grads(1, 2))
        opt.step(grads(3, 4))
        assert of[0].tolist() == [-4.0] * 3
        assert not opt.state["wrap_sum"][0].any()

    @every_backend
    def test_flush_divides_by_what_there_is(self, backend):
        of = ones()
        opt = sgd(of, backend, accumulate=4)
        assert opt.flush() is False
        opt.step(grads(1, 2))
        opt.step(grads(2, 6))
        opt.step(grads(3, 1))
        assert opt.flush() is True
        assert of[0].tolist() == [-2.0] * 3
        assert of[1].tolist() == [-3.0] * 6
        assert (opt.pending, opt.t) == (0, 1)
        assert opt.flush() is False

    @every_backend
    def test_gradients_that_are_missing(self, backend):
        of = [np.zeros(2, F) for _ in range(4)]
        opt = sgd(of, backend, accumulate=3)
        one = np.ones(2, F)
        opt.step([one, None, None, None])
        opt.step([one, 5 * one, None, None])
        assert opt.pending == 2
        opt.step([None, one, 3 * one, None])
        # Each divided by three calls, whichever a tensor took part in.
        assert [a[0] for a in of] == [F(-2) * F(1 / 3), -2.0, -1.0, 0.0]
        assert list(opt.steps.values()) == [1, 1, 1, 0]
        assert opt.pending == 0
        opt.step([None, None, None, one])
        opt.flush()
        assert list(opt.steps.values()) == [1, 1, 1, 1]
        assert of[3].tolist() == [-1.0] * 2

    def test_a_call_without_any_gradient_is_none(self):
        of = ones()
        opt = sgd(of, accumulate=2)
        opt.step(grads(1, 1))
        assert opt.step(grads(None, None)) is True
        assert (opt.pending, opt.t) == (1, 0)

    def test_tensors_that_joined_late_are_split_and_count_on_their_own(self):
        a, b = ones(), ones()
        one, two = sgd(a, accumulate=2), sgd(b, accumulate=2)
        for opt in (one, two):
            opt.step(grads(1, None))
            opt.step(grads(1, None))
            opt.step(grads(1, 1))
            opt.step(grads(None, 1))
        assert list(one.steps.values()) == [2, 1]
        assert a[1].tolist() == [-1.0] * 6

    @every_backend
    def test_clipping_is_of_the_mean_or_of_the_sum(self, backend):
        for order, expected in (("average", -5.0), ("caffe", -2.5)):
            of = [np.zeros(1)]
            opt = sgd(of, backend, accumulate=2, clip_grad_norm=5, order=order)
            opt.step([np.full(1, 8.0)])
            opt.step([np.full(1, 4.0)])
            assert of[0].tolist() == [expected]

    def test_how_many_calls_may_change_between(self):
        of = ones()
        opt = sgd(of, accumulate=4)
        opt.step(grads(1, 1))
        opt.step(grads(1, 1))
        opt.wrap_every = 2  # there are two already: the next call updates
        opt.step(grads(4, 4))
        assert of[0].tolist() == [-2.0] * 3
        opt.groups[0].wrap_every = 1
        opt.step(grads(1, 1))
        assert opt.t == 2

    def test_groups_that_have_come_to_differ(self):
        of = ones()
        opt = sgd([{"params": of[0]}, {"params": of[1]}], accumulate=2)
        opt.groups[0].wrap_every = 3
        with pytest.raises(HyperparameterError, match="different wrap_every"):
            opt.step(grads(1, 1))

    def test_half_precision_sums_in_float32(self):
        of = [np.zeros(2, ml_dtypes.bfloat16)]
        opt = sgd(of, accumulate=257, accumulation="sum")
        for _ in range(257):
            opt.step([np.ones(2, ml_dtypes.bfloat16)])
        assert opt.state["wrap_sum"][0].dtype == F
        assert of[0].astype(F).tolist() == [float(ml_dtypes.bfloat16(-257))] * 2

    @every_backend
    @pytest.mark.parametrize("bad", [0, 1])
    def test_skipped_calls_are_none(self, backend, bad):
        of = ones()
        opt = sgd(of, backend, nonfinite="skip", accumulate=2)
        if bad == 1:
            opt.step(grads(1, 1))
        assert opt.step(grads(np.nan, 1)) is False
        assert (opt.pending, opt.t) == (bad, 0)
        assert not any(a.any() for a in of)
        for _ in range(2 - bad):
            opt.step(grads(3, 1))
        assert of[0].tolist() == [-2.0 if bad else -3.0] * 3

    def test_raised_in_any_call(self):
        opt = sgd(ones(), nonfinite="raise", accumulate=3)
        opt.step(grads(1, 1))
        with pytest.raises(NonfiniteGradient) as raised:
            opt.step(grads(1, np.inf))
        assert raised.value.names == ("1",)
        assert opt.pending == 1

    def test_gradients_that_cannot_be_used_are_refused_in_every_call(self):
        of = ones()
        opt = sgd(of, accumulate=3)
        for wrong in (of, [np.ones(3), np.ones(6, F)], [np.ones(4, F), np.ones(6, F)]):
            with pytest.raises(ArrayError):
                opt.step(wrong)
        with pytest.raises(ArrayError, match="shares memory"):
            opt.step([opt.state["wrap_sum"][0], np.ones(6, F)])
        with pytest.raises(ArrayError, match="shares memory"):
            opt.step([of[1][:3], np.ones(6, F)])
        assert opt.pending == 0

    def test_a_function_in_place_of_gradients(self):
        of = ones()
        opt = sgd(of, accumulate=2)
        assert opt.step(lambda: (7.5, grads(1, 1))) == 7.5
        assert (opt.pending, opt.t) == (1, 0)
        with pytest.raises(OptimizerError, match="flush can't be called by the function"):
            opt.step(lambda: opt.flush())

    def test_what_fails_midway_leaves_the_count(self, monkeypatch):
        of = ones()
        opt = sgd(of, accumulate=3)
        opt.step(grads(1, 1))
        bound = opt._sums.launches.bind(grads(1, 1))
        monkeypatch.setattr(type(bound), "launch", lambda self: (_ for _ in ()).throw(RuntimeError("no")))
        with pytest.raises(RuntimeError, match="no"):
            opt.step(grads(1, 1))
        monkeypatch.undo()
        assert opt.pending == 1

    def test_without_accumulation_nothing_is_pending(self):
        opt = sgd(ones(), l2=0.1)
        opt.step(grads(1, 1))
        assert (opt.pending, opt.flush()) == (0, False)
