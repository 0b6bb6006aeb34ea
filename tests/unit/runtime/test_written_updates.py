"""Updates that are left in the gradients' arrays, and clipping as Caffe does it."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from generated import FTRL, SGD, Adam, CaffeSGD, Lion
from solvergen.errors import ArrayError, HyperparameterError, OptimizerError
from solvergen.runtime.wrappers import Wrappers
from tests.support.bits import assert_same_bits
from tests.support.shipped import HOST_BACKENDS

F = np.float32
every_backend = pytest.mark.parametrize("backend", HOST_BACKENDS)


@every_backend
class TestWrittenUpdates:
    def test_the_history_of_caffes_sgd(self, backend):
        rng = np.random.default_rng(3)
        a = rng.normal(size=777).astype(F)
        b = a.copy()
        opt = CaffeSGD([a], lr=0.1, backend=backend, wrappers=Wrappers(write_update=True, order="caffe"))
        plain = CaffeSGD([b], lr=0.1, backend=backend)
        for _ in range(3):
            gradient = rng.normal(size=777).astype(F)
            plain.step([gradient])
            opt.step([gradient])
            assert_same_bits(gradient, opt.state["history"][0])
        assert_same_bits(a, b)

    @pytest.mark.parametrize("dtype", [F, np.float64, np.float16, ml_dtypes.bfloat16])
    def test_what_the_last_equation_subtracts(self, backend, dtype):
        rng = np.random.default_rng(4)
        param, gradient = (rng.normal(size=1000).astype(dtype) for _ in range(2))
        real = np.float64 if dtype is np.float64 else F
        expected = (real(0.3) * gradient.astype(real)).astype(dtype)
        wraps = Wrappers(write_update=True, weight_decay=0.5, bounds=(-0.1, 0.1))
        SGD([param], lr=0.3, backend=backend, wrappers=wraps).step([gradient])
        assert_same_bits(gradient, expected)

    def test_the_difference_where_the_equation_is_another(self, backend):
        rng = np.random.default_rng(5)
        before = rng.normal(size=1000).astype(F)
        param, gradient = before.copy(), rng.normal(size=1000).astype(F)
        opt = FTRL([param], lr=0.5, backend=backend, wrappers=Wrappers(write_update=True, weight_decay=0.5))
        opt.step([gradient])
        assert_same_bits(gradient, F(0.75) * before - param)

    def test_of_lion_with_half_gradients(self, backend):
        rng = np.random.default_rng(6)
        param = rng.normal(size=1000).astype(F)
        gradient = rng.normal(size=1000).astype(np.float16)
        expected = (F(0.01) * np.sign(gradient.astype(F))).astype(np.float16)
        Lion([param], lr=0.01, backend=backend, wrappers=Wrappers(write_update=True)).step([gradient])
        assert_same_bits(gradient, expected)

    def test_calls_that_only_sum_up_leave_gradients(self, backend):
        opt = SGD(
            [np.zeros(3, F)], lr=1.0, backend=backend, wrappers=Wrappers(accumulate=2, write_update=True)
        )
        first, second = np.full(3, 2, F), np.full(3, 4, F)
        opt.step([first])
        opt.step([second])
        assert first.tolist() == [2.0] * 3
        assert second.tolist() == [3.0] * 3

    def test_gradients_that_cannot_be_written(self, backend):
        params = [np.ones(3, F), np.ones(3, F)]
        opt = Adam(params, backend=backend, wrappers=Wrappers(write_update=True))
        fixed = np.ones(3, F)
        fixed.flags.writeable = False
        with pytest.raises(ArrayError, match=r"gradient of '1'.*read-only"):
            opt.step([np.ones(3, F), fixed])
        shared = np.ones(4, F)
        with pytest.raises(ArrayError, match=r"gradients of '0' and '1' share memory"):
            opt.step([shared[:3], shared[1:]])
        assert opt.t == 0
        assert params[0].tolist() == [1.0] * 3


def caffes(gradients, limit, scale):
    """Clip the sum, then normalise: in float64."""
    norm = np.sqrt(sum(np.sum(g.astype(np.float64) ** 2) for g in gradients))
    factor = limit / norm if norm > limit else 1.0
    return norm, [g * factor * scale for g in gradients]


@every_backend
class TestAsCaffeClips:
    @pytest.mark.parametrize("limit", [0.5, 1000.0])
    def test_the_sum_is_clipped_and_then_normalised(self, backend, limit):
        rng = np.random.default_rng(8)
        sums = [rng.normal(size=50).astype(F), rng.normal(size=(3, 7)).astype(F)]
        norm, expected = caffes(sums, limit, 0.25)
        params = [np.zeros_like(g) for g in sums]
        wraps = Wrappers(order="caffe", clip_grad_norm=limit, normalize=0.25)
        opt = SGD(params, lr=1.0, backend=backend, wrappers=wraps)
        assert opt.clip_norm == 0.0
        opt.step(sums)
        for param, gradient in zip(params, expected, strict=True):
            np.testing.assert_allclose(param, -gradient, rtol=1e-6)
        assert opt.clip_norm == pytest.approx(norm, rel=1e-12)

    def test_a_limit_of_zero_learns_nothing(self, backend):
        param = np.ones(3, F)
        wraps = Wrappers(order="caffe", clip_grad_norm=0)
        opt = SGD([param], lr=1.0, backend=backend, wrappers=wraps)
        assert opt.wrappers == wraps
        for gradient in (np.arange(3, dtype=F), np.zeros(3, F)):
            opt.step([gradient])
            assert param.tolist() == [1.0] * 3

    def test_a_norm_that_is_no_number_clips_nothing(self, backend):
        param = np.zeros(2, F)
        opt = SGD([param], lr=1.0, backend=backend, wrappers=Wrappers(order="caffe", clip_grad_norm=0.1))
        opt.step([np.array([np.nan, 5], F)])
        assert np.isnan(param[0])
        assert param[1] == -5.0
        assert np.isnan(opt.clip_norm)


def test_only_caffe_has_a_limit_of_zero():
    with pytest.raises(HyperparameterError, match="clip_grad_norm must be above 0"):
        Wrappers(clip_grad_norm=0)
    opt = SGD([np.ones(2, F)], lr=1.0, backend="numpy", wrappers=Wrappers(clip_grad_norm=1))
    with pytest.raises(HyperparameterError, match="only for order"):
        opt.wrap_max_grad_norm = 0


def test_normalising_takes_part_in_the_mean():
    param = np.zeros(1, F)
    opt = SGD([param], lr=1.0, backend="numpy", wrappers=Wrappers(normalize=0.5, clip_value=1.0))
    opt.step([np.array([8], F)])
    assert param[0] == -1.0  # normalised, then clipped


def test_no_norm_without_clipping():
    opt = SGD([np.ones(2, F)], lr=1.0, backend="numpy", wrappers=Wrappers())
    with pytest.raises(OptimizerError, match="takes no norm"):
        _ = opt.clip_norm
