"""Numeric faults that optimizers elsewhere have had, each with the numbers of its report.

Ids are those of the project's collection of reports. All run on every backend of the host.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import ArrayError, SolvergenError
from solvergen.verify import built_from
from tests.support.shipped import CLASSES, HOST_BACKENDS, stepped

pytestmark = pytest.mark.parametrize("backend", HOST_BACKENDS)

SPECS = Path(__file__).parents[2] / "specs"
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
ADAM_LIKE = ("adam", "caffe_adam")
WITH_DELTA = ("caffe_adagrad", "caffe_rmsprop", "caffe_adadelta", "caffe_adam")


def first_step(name: str, w: float, g: float, backend: str, dtype: str = "float64", **settings: Any) -> float:
    """How far the first update moves a parameter of one element."""
    param = np.array([w], dtype)
    CLASSES[name](param, backend=backend, **settings).step(np.array([g], dtype))
    return float(param[0]) - w


def test_b01_adam_s_epsilon_is_that_of_algorithm_1(backend: str) -> None:
    moved = first_step("adam", 0.0, 1e-8, backend, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8)
    assert moved == pytest.approx(-5.0e-4, rel=1e-12)


def test_b01_caffe_s_epsilon_is_not_corrected(backend: str) -> None:
    moved = first_step("caffe_adam", 0.0, 1e-8, backend, lr=1e-3, momentum=0.9, momentum2=0.999, delta=1e-8)
    assert moved == pytest.approx(-3.0653e-5, rel=1e-4)


def test_b03_rmsprop_s_epsilon_stands_outside_the_root(backend: str) -> None:
    large = first_step("caffe_rmsprop", 0.0, 0.1, backend, lr=1.0, rms_decay=0.9, delta=1.0)
    assert large == pytest.approx(-0.0969347, rel=1e-6)
    small = first_step("caffe_rmsprop", 0.0, 1e-6, backend, lr=1.0, rms_decay=0.9, delta=1e-8)
    assert small == pytest.approx(-3.06534, rel=1e-5)


def test_b07_amsgrad_takes_the_maximum_of_the_raw_moment(backend: str) -> None:
    w = np.zeros(4)
    adam = CLASSES["adam"](w, lr=0.01, beta1=0.9, beta2=0.7, eps=1e-8, amsgrad=True, backend=backend)
    adam.step(np.array([1.0, -1.0, 10.0, -10.0]))
    adam.step(np.array([-10.0, -10.0, -1.0, -1.0]))
    np.testing.assert_allclose(w, [-0.00377703, 0.01745388, -0.01548985, 0.01686232], atol=5e-9)


@pytest.mark.parametrize("g", [1.0, -3.0, 1e5, 1e-3])
def test_b11_time_begins_at_one(backend: str, g: float) -> None:
    moved = first_step("adam", 0.0, g, backend, lr=1e-3)
    assert abs(moved) == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.parametrize("name", ADAM_LIKE)
def test_b13_all_parameters_see_one_t(backend: str, name: str) -> None:
    params = [np.zeros(1) for _ in range(3)]
    betas = {"beta1": 0.9} if name == "adam" else {"momentum": 0.9}
    optimizer = CLASSES[name](params, lr=1e-3, backend=backend, **betas)
    optimizer.step([np.ones(1)] * 3)
    for param in params:
        assert param[0] == pytest.approx(-1e-3, rel=1e-6)


def test_b15_each_parameter_counts_its_own_updates(backend: str) -> None:
    together = {"p1": np.zeros(1), "p2": np.zeros(1)}
    optimizer = CLASSES["adam"](together, backend=backend)
    alone = np.zeros(1)
    lone = CLASSES["adam"](alone, backend=backend)
    for step in range(1, 5):
        g = np.array([0.3 * step])
        optimizer.step({"p1": g, "p2": None if step % 2 else g.copy()})
        if step % 2 == 0:
            lone.step(g.copy())
        assert (optimizer.steps["p1"], optimizer.steps["p2"]) == (step, step // 2)
    assert together["p2"].tobytes() == alone.tobytes()


def test_b17_the_order_of_independent_equations_changes_nothing(backend: str, tmp_path: Path) -> None:
    first = "  - exp_avg = beta1*exp_avg + (1 - beta1)*g\n"
    second = "  - exp_avg_sq = beta2*exp_avg_sq + (1 - beta2)*g**2\n"
    text = (SPECS / "adam.yaml").read_text(encoding="utf-8")
    assert first + second in text
    (tmp_path / "adam.yaml").write_text(text.replace(first + second, second + first), encoding="utf-8")
    results = []
    with built_from([tmp_path / "adam.yaml"]) as swapped:
        for cls in (CLASSES["adam"], swapped["adam"]):
            w = np.linspace(-1, 1, 20).astype(np.float32)
            adam = cls(w, lr=0.1, weight_decay=0.01, backend=backend)
            for step in range(3):
                adam.step(np.sin(np.arange(20) * (step + 1)).astype(np.float32))
            results.append([w.tobytes(), *(adam.state[s]["0"].tobytes() for s in ("exp_avg", "exp_avg_sq"))])
    assert results[0] == results[1]


def test_b17_an_equation_reads_the_latest_value(backend: str, tmp_path: Path) -> None:
    """Lion's direction reads the momentum of before the update; swapped, that of after it."""
    lines = [
        "  - direction = sign(beta1*exp_avg + (1 - beta1)*grad)",
        "  - exp_avg = beta2*exp_avg + (1 - beta2)*grad",
    ]
    text = (SPECS / "lion.yaml").read_text(encoding="utf-8")
    assert "\n".join(lines) in text
    swapped_text = text.replace("\n".join(lines), "\n".join(reversed(lines)))
    (tmp_path / "lion.yaml").write_text(swapped_text, encoding="utf-8")
    # With beta1 near 1 a gradient that turns round is outvoted by the old momentum, but not by the new.
    with built_from([tmp_path / "lion.yaml"]) as swapped:
        for cls, expected in ((CLASSES["lion"], -2.0), (swapped["lion"], 0.0)):
            w = np.zeros(1)
            lion = cls(w, lr=1.0, beta1=0.75, beta2=0.0, backend=backend)
            lion.step(np.ones(1))
            lion.step(np.array([-2.0]))
            assert w[0] == expected


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("eps", [1e-8, 1e-6])
@pytest.mark.parametrize("name", ["adam", *WITH_DELTA])
def test_b19_a_zero_gradient_in_half_precision_is_finite(
    backend: str, name: str, eps: float, dtype: Any
) -> None:
    w = np.array([1.0, -2.0], dtype)
    before = w.copy()
    optimizer = CLASSES[name](w, backend=backend, **({"eps": eps} if name == "adam" else {"delta": eps}))
    for _ in range(3):
        optimizer.step(np.zeros(2, dtype))
    assert w.tobytes() == before.tobytes()


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_b21_moments_of_half_parameters_are_float32(backend: str, dtype: Any) -> None:
    w = np.zeros(4, dtype)
    adam = CLASSES["adam"](w, lr=0.01, backend=backend)
    for _ in range(5):
        adam.step(np.full(4, 1e-4, dtype))
    assert np.isfinite(w.astype(float)).all()
    assert float(w[0]) == pytest.approx(-0.05, rel=0.02)
    squared = adam.state["exp_avg_sq"]["0"]
    assert squared.dtype == np.float32
    assert (squared > 0).all()


@pytest.mark.parametrize("count", [16_777_216, 2**31 - 1, 2**31, 2**53 - 1])
def test_b23_the_count_is_an_integer(backend: str, count: int) -> None:
    adam = CLASSES["adam"](np.zeros(1, np.float32), backend=backend)
    saved = adam.state_dict()
    saved["tensors"]["0"]["t"] = count
    adam.load_state_dict(saved)
    adam.step(np.ones(1, np.float32))
    assert adam.steps["0"] == adam.t == count + 1
    assert isinstance(adam.t, int)


def test_b25_loading_keeps_the_bits_of_the_moments(backend: str) -> None:
    w = np.zeros(3, np.float16)
    adam = CLASSES["adam"](w, backend=backend)
    adam.step(np.array([1.0, 0.1, 3.0], np.float16))
    saved = adam.state_dict()
    other = CLASSES["adam"](w.copy(), backend=backend)
    other.load_state_dict(saved)
    for name in ("exp_avg", "exp_avg_sq"):
        assert other.state[name]["0"].dtype == np.float32
        assert other.state[name]["0"].tobytes() == adam.state[name]["0"].tobytes()


@pytest.mark.parametrize("name", ADAM_LIKE)
def test_b27_powers_of_beta_are_not_rounded_to_bfloat16(backend: str, name: str) -> None:
    w = np.zeros(2, ml_dtypes.bfloat16)
    CLASSES[name](w, lr=0.5, backend=backend).step(np.ones(2, ml_dtypes.bfloat16))
    assert w.astype(float).tolist() == [-0.5, -0.5]


@pytest.mark.parametrize("name", ["adam", "lion", "sgd", "caffe_sgd", "caffe_nesterov", *WITH_DELTA])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_b29_without_gradient_nothing_moves(backend: str, name: str, dtype: str) -> None:
    w = np.zeros(3, dtype)
    optimizer = CLASSES[name](w, lr=1e-3, backend=backend)
    for _ in range(500):
        optimizer.step(np.zeros(3, dtype))
    assert w.tobytes() == np.zeros(3, dtype).tobytes()


@pytest.mark.parametrize("name", ADAM_LIKE)
def test_b37_without_first_moment(backend: str, name: str) -> None:
    settings = {"beta1": 0.0, "beta2": 0.999} if name == "adam" else {"momentum": 0.0, "momentum2": 0.999}
    assert first_step(name, 0.0, 1.0, backend, lr=1e-3, **settings) == pytest.approx(-1e-3, rel=1e-6)
    assert first_step(name, 0.0, 0.0, backend, lr=1e-3, **settings) == 0.0


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_b39_a_parameter_of_zeros_takes_a_finite_first_step(backend: str, name: str) -> None:
    w = np.zeros(4)
    optimizer = CLASSES[name](w, backend=backend)
    for _ in range(2):  # adopt only looks at the first gradient
        stepped(optimizer, np.full(4, -2.0))
        assert np.isfinite(w).all()
    assert (w > 0).all()


LR_IS_NO_FACTOR = {"rprop", "ftrl", "madgrad"}
"""rprop's lr is a first step size, brought into its range; ftrl divides by it; madgrad forms the parameter
anew from where it began, which rounds."""


@pytest.mark.parametrize("lr", [0.0, 1e-45])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(CLASSES.keys() - LR_IS_NO_FACTOR))
def test_b41_a_rate_of_nothing_moves_nothing(backend: str, name: str, dtype: str, lr: float) -> None:
    w = np.array([1.0, -2.0, 0.5], dtype)
    before = w.copy()
    optimizer = CLASSES[name](w, lr=lr, backend=backend)
    for _ in range(3):
        stepped(optimizer, np.array([1.0, -1e-3, 1e6], dtype))
    assert w.tobytes() == before.tobytes()


@pytest.mark.parametrize("empty_at", [0, 1, 2])
def test_b43_an_empty_tensor_hides_nothing(backend: str, empty_at: int) -> None:
    params = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
    params.insert(empty_at, np.zeros(0, np.float32))
    optimizer = CLASSES["sgd"](params, lr=1.0, backend=backend)
    optimizer.step([np.ones(p.shape, np.float32) for p in params])
    assert [p.tolist() for p in params] == [[-1.0] * p.size for p in params]
    assert optimizer.steps[str(empty_at)] == 1


def test_b45_parameters_without_dimensions(backend: str) -> None:
    w = np.array(1.0, np.float32)
    adam = CLASSES["adam"](w, lr=0.5, backend=backend)
    adam.step(np.array(2.0, np.float32))
    assert w.shape == adam.state["exp_avg"]["0"].shape == ()
    assert float(w) == pytest.approx(0.5)


def test_b47_a_strided_parameter_is_refused_not_walked_over(backend: str) -> None:
    w = np.zeros((2, 4, 4, 3), np.float32).transpose(0, 3, 1, 2)
    with pytest.raises(ArrayError, match="contiguous"):
        CLASSES["sgd"](w, lr=1.0, backend=backend)


def test_b47_a_strided_gradient_is_refused_or_read_right(backend: str) -> None:
    w = np.zeros((2, 3, 4, 4), np.float32)
    sgd = CLASSES["sgd"](w, lr=1.0, backend=backend)
    g = np.ascontiguousarray(np.arange(96, dtype=np.float32).reshape(2, 3, 4, 4).transpose(0, 2, 3, 1))
    with pytest.raises(ArrayError, match="contiguous"):
        sgd.step(g.transpose(0, 3, 1, 2))
    assert not w.any()
    assert sgd.t == 0


@pytest.mark.parametrize("offset", [1, 2, 3, 5])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_b49_addresses_that_vectors_are_not_aligned_for(backend: str, offset: int, dtype: str) -> None:
    n = 1000
    memory = np.full(n + 16, 7.0, dtype)
    w = memory[offset : offset + n]
    gradient = (np.arange(n + 16) % 13).astype(dtype)[3 - offset % 2 :][:n]
    assert not w.flags.owndata
    CLASSES["sgd"](w, lr=1.0, backend=backend).step(gradient)
    assert (w == 7.0 - gradient).all()
    assert (memory[:offset] == 7.0).all()
    assert (memory[offset + n :] == 7.0).all()


def test_b51_all_elements_of_a_matrix(backend: str) -> None:
    w = np.zeros((8, 1024), np.float32)
    CLASSES["adam"](w, lr=1.0, backend=backend).step(np.ones((8, 1024), np.float32))
    assert (w < -0.99).sum() == 8192


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_b53_indices_are_64_bits_wide(backend: str, name: str) -> None:
    """No kernel counts elements in 32 bits: chunk starts are 64-bit, so are loop counters."""
    folder = Path(CLASSES[name].definition.folder)
    text = (folder / "kernel.c").read_text(encoding="utf-8")
    assert re.search(r"int64_t start;", text)
    assert re.search(r"for \(int64_t \w+ = ", text)
    assert not re.search(r"for \(int \w+ = ", text)
    text = (folder / "kernel.cu").read_text(encoding="utf-8")
    assert re.search(r"(long long|sg_i64|int64_t) start;", text)


@pytest.mark.parametrize("name", sorted(CLASSES))
@pytest.mark.parametrize("dtype", ["complex64", "int32", "bool"])
def test_b55_types_without_a_meaning_are_refused(backend: str, name: str, dtype: str) -> None:
    with pytest.raises(ArrayError, match=dtype):
        CLASSES[name](np.zeros(2, dtype), backend=backend)


def test_b59_an_empty_model_is_refused_in_words(backend: str) -> None:
    for empty in ([], {}):
        with pytest.raises(ArrayError, match="empty"):
            CLASSES["adam"](empty, backend=backend)


def test_b59_a_step_of_an_empty_group_does_nothing(backend: str) -> None:
    w = np.ones(2)
    adam = CLASSES["adam"]([{"params": []}, {"params": [w], "lr": 0.5}], backend=backend)
    assert adam.step([[], [np.ones(2)]])
    assert w == pytest.approx(0.5)
    assert CLASSES["adam"]([{"params": []}], backend=backend).step([[]])


def test_b71_decay_reaches_every_equation_alike(backend: str) -> None:
    """Coupled decay: both moments and the step see the same gradient, grad + weight_decay*param."""
    w = np.array([2.0])
    adam = CLASSES["adam"](w, lr=0.1, weight_decay=0.5, backend=backend)
    adam.step(np.array([0.25]))
    assert adam.state["exp_avg"]["0"][0] == pytest.approx(0.1 * 1.25, rel=1e-15)
    assert adam.state["exp_avg_sq"]["0"][0] == pytest.approx(0.001 * 1.25**2, rel=1e-13)
    assert w[0] == pytest.approx(1.9, rel=1e-7)


def test_b73_powers_come_from_the_restored_betas(backend: str) -> None:
    w = np.ones(2)
    trained = CLASSES["adam"](w, beta1=0.5, beta2=0.9, backend=backend)
    trained.step(np.array([1.0, -2.0]))
    other_w = w.copy()
    resumed = CLASSES["adam"](other_w, beta1=0.9, beta2=0.999, backend=backend)
    resumed.load_state_dict(trained.state_dict())
    assert (resumed.beta1, resumed.beta2) == (0.5, 0.9)
    for optimizer in (trained, resumed):
        optimizer.step(np.array([0.5, 0.25]))
    assert w.tobytes() == other_w.tobytes()


def test_b73_a_state_of_another_shape_is_refused(backend: str) -> None:
    saved = CLASSES["adam"](np.ones(3), backend=backend).state_dict()
    other = CLASSES["adam"](np.ones(4), backend=backend)
    with pytest.raises(SolvergenError, match="shape"):
        other.load_state_dict(saved)


def test_b75_lion_s_decay_is_decoupled(backend: str) -> None:
    moved = first_step("lion", 1.0, -0.001, backend, weight_decay=0.1, lr=1e-3, beta1=0.9)
    assert 1.0 + moved == pytest.approx(1.0009, rel=1e-12)


def test_b77_the_rate_multiplies_the_decay_everywhere(backend: str) -> None:
    w = np.array([1.0])
    group = {"params": [w], "lr_mult": 0.5, "decay_mult": 2.0}
    CLASSES["lion"]([group], lr=0.1, weight_decay=0.05, backend=backend).step([np.ones(1)])
    assert w[0] == pytest.approx(1.0 - 0.05 * (1.0 + 0.1), rel=1e-15)


def test_b81_dampening_begins_at_the_second_step(backend: str) -> None:
    sgd = CLASSES["sgd"](np.zeros(1), momentum=0.9, dampening=0.9, backend=backend)
    for expected in (1.0, 1.0):
        sgd.step(np.ones(1))
        assert sgd.state["momentum_buffer"]["0"][0] == pytest.approx(expected, rel=1e-15)
