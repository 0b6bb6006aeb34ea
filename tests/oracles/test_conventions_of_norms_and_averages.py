"""Sentences under `conventions` and `description` of rules with norms, estimates and averages."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

pytestmark = pytest.mark.parametrize("backend", HOST_BACKENDS)

rng = np.random.default_rng(5)
GRADIENTS = [rng.normal(size=6) for _ in range(9)]


@pytest.mark.parametrize(
    ("name", "share"), [("schedule_free_sgd", "momentum"), ("schedule_free_adamw", "beta1")]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_schedule_free_x_is_the_mean_of_z_and_found_from_y(
    name: str, share: str, dtype: str, backend: str
) -> None:
    y = np.linspace(-1, 1, 6).astype(dtype)
    settings = {"lr": 0.3, share: 0.8, "weight_lr_power": 0, "average": True}
    optimizer = CLASSES[name](y, backend=backend, **settings)
    seen = []
    for g in GRADIENTS:
        optimizer.step(g.astype(dtype))
        (z,), (x,) = optimizer.state["z"].values(), optimizer.state["x"].values()
        seen.append(z.copy())
        near = {"tolerance": 1e-12 if dtype == "float64" else 1e-6}
        assert_near(x, np.mean(seen, axis=0), "x", **near)
        assert_near(y + (1 - 1 / 0.8) * (z - y), x, "x from y and z", **near)


def test_schedule_free_warms_up_to_lr_itself(backend: str) -> None:
    w = np.zeros(1)
    optimizer = CLASSES["schedule_free_sgd"](w, lr=1.0, warmup_steps=4, backend=backend)
    (z,) = optimizer.state["z"].values()
    seen = [z.copy()]
    for _ in range(6):
        optimizer.step(np.ones(1))
        (z,) = optimizer.state["z"].values()
        seen.append(z.copy())
    steps = [float(a[0] - b[0]) for a, b in pairwise(seen)]
    assert steps == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_grokfast_amplifies_the_first_gradient_at_once(backend: str) -> None:
    optimizer = CLASSES["grokfast_adamw"](np.zeros(2), lamb=3.0, beta1=0.0, backend=backend)
    optimizer.step(np.array([0.5, -2.0]))
    (mean,) = optimizer.state["exp_avg"].values()
    assert list(mean) == [2.0, -8.0]


def test_optimism_converges_where_descent_circles_outwards(backend: str) -> None:
    """Two players on x*y, whose equilibrium is 0: one descends, one ascends."""
    distances = {}
    for name in ("sgd", "optimistic_sgd"):
        x, y = np.ones(1), np.ones(1)
        optimizer = CLASSES[name]({"x": x, "y": y}, lr=0.2, backend=backend)
        for _ in range(200):
            optimizer.step({"x": y.copy(), "y": -x})
        distances[name] = float(np.hypot(x, y)[0])
    assert distances["sgd"] > 10
    assert distances["optimistic_sgd"] < 0.1


def test_lars_and_lamb_take_steps_of_a_size_beside_the_tensor(backend: str) -> None:
    for name, settings in {
        "lars": {"lr": 0.5, "momentum": 0.0, "trust_coefficient": 0.1},
        "lamb": {"lr": 0.05, "weight_decay": 0.1},
        "fromage": {"lr": 0.05},
    }.items():
        large, small = np.full(8, 300.0), np.full(8, 3e-3)
        start = [large.copy(), small.copy()]
        optimizer = CLASSES[name]([large, small], backend=backend, **settings)
        optimizer.step([np.tile(GRADIENTS[0][:2], 4) * 1e-5] * 2)
        for now, before in zip((large, small), start, strict=True):
            moved = now * np.sqrt(1 + 0.05**2) - before if name == "fromage" else now - before
            assert_near(np.linalg.norm(moved) / np.linalg.norm(before), 0.05, name, tolerance=1e-9)


@pytest.mark.parametrize("name", ["lars", "lamb", "fromage"])
def test_a_tensor_of_zeros_can_leave_them(name: str, backend: str) -> None:
    w = np.zeros(3)
    CLASSES[name](w, backend=backend).step(np.array([1.0, -2.0, 0.0]))
    assert (np.sign(w) == [-1, 1, 0]).all()
    assert np.isfinite(w).all()


def test_a_group_may_be_left_out_of_the_adaption(backend: str) -> None:
    bias, like_adamw = np.ones(4), np.ones(4)
    groups = [{"params": [np.full(3, 9.0)]}, {"params": [bias], "adapt": False, "weight_decay": 0}]
    settings = {"lr": 0.1, "backend": backend}
    optimizer = CLASSES["lamb"](groups, weight_decay=0.5, **settings)
    other = CLASSES["adamw"](like_adamw, eps=1e-6, weight_decay=0, **settings)
    for g in GRADIENTS:
        optimizer.step([[g[:3]], [g[:4]]])
        other.step(g[:4])
    assert_near(bias, like_adamw, "the bias")


def test_lamb_clips_all_gradients_together(backend: str) -> None:
    pair, clipped = [np.ones(3), np.ones(2)], [np.ones(3), np.ones(2)]
    settings = {"lr": 0.1, "eps": 1.0, "backend": backend}
    g = [np.array([3.0, 0.0, 0.0]), np.array([0.0, -4.0])]
    CLASSES["lamb"](pair, **settings).step([x / 10 for x in g])
    CLASSES["lamb"](clipped, max_grad_norm=0.5, **settings).step(g)  # their norm is 5
    for a, b in zip(pair, clipped, strict=True):
        assert_near(a, b, "clipped", tolerance=1e-14)
    CLASSES["lamb"](pair, max_grad_norm=1e9, **settings).step(g)
    CLASSES["lamb"](clipped, **settings).step(g)
    for a, b in zip(pair, clipped, strict=True):
        assert_near(a, b, "not clipped", tolerance=1e-13)


def test_norms_need_their_pass(backend: str) -> None:
    optimizer = CLASSES["lamb"](np.ones(2), backend=backend)
    with pytest.raises(SolvergenError, match="clip_grad_norm=True"):
        optimizer.max_grad_norm = 1.0


def test_novograd_s_first_step_is_the_direction_of_the_gradient(backend: str) -> None:
    w = np.zeros(2)
    CLASSES["novograd"](w, lr=1.0, eps=0, backend=backend).step(np.array([3e-9, -4e-9]))
    assert_near(w, [-0.6, 0.8], "first step")


def test_stable_adamw_slows_down_where_gradients_jump(backend: str) -> None:
    settings = {"lr": 1.0, "beta1": 0.0, "beta2": 0.99, "eps": 0.0, "weight_decay": 0.0, "backend": backend}
    steps = {}
    for threshold in (1.0, 1e9):
        w = np.zeros(3)
        optimizer = CLASSES["stable_adamw"](w, clip_threshold=threshold, **settings)
        for _ in range(300):
            optimizer.step(np.full(3, 1e-3))
        before = w.copy()
        optimizer.step(np.full(3, 1.0))
        steps[threshold] = w - before
    assert_near(
        steps[1e9], [-10.0] * 3, "as AdamW", tolerance=0.05
    )  # 1/sqrt(0.01), the mean being 0.01 of it
    assert_near(steps[1.0], [-1.0] * 3, "clipped", tolerance=1e-12)


def test_fromage_keeps_a_norm_against_gradients_at_right_angles(backend: str) -> None:
    w = np.array([3.0, 4.0])
    optimizer = CLASSES["fromage"](w, lr=0.3, backend=backend)
    for _ in range(50):
        optimizer.step(np.array([-w[1], w[0]]))
        assert_near(np.linalg.norm(w), 5.0, "norm")


def test_cautious_adamw_knows_the_sign_of_small_gradients(backend: str) -> None:
    """Multiplied out they would be 0 in float32, and nothing would move."""
    w = np.zeros(2, np.float32)
    CLASSES["cautious_adamw"](w, lr=1.0, eps=1e-30, xi=0, backend=backend).step(
        np.array([1e-30, -1e-30], np.float32)
    )
    assert (np.sign(w) == [-1, 1]).all()


def test_cautious_adamw_leaves_out_what_disagrees(backend: str) -> None:
    w = np.zeros(4)
    settings = {"lr": 1.0, "beta1": 0.9, "weight_decay": 0, "backend": backend}
    optimizer = CLASSES["cautious_adamw"](w, **settings)
    optimizer.step(np.ones(4))
    assert_near(w, [-4 / 5] * 4, "n/(n + 1) of AdamW's", tolerance=1e-7)
    before = w.copy()
    optimizer.step(np.array([-1e-3, 0.0, 1.0, 1.0]))
    assert list(w[:2]) == list(before[:2])
    assert_near(w[2:], before[2:] - 4 / 3, "n/(k + 1) of AdamW's", tolerance=1e-7)


def test_mars_adamw_clips_each_tensor_by_itself(backend: str) -> None:
    optimizer = CLASSES["mars_adamw"]([np.zeros(2), np.zeros(2)], beta1=0.0, backend=backend)
    optimizer.step([np.array([3.0, 4.0]), np.array([0.3, 0.4])])
    large, small = optimizer.state["exp_avg"].values()
    assert_near(large, [0.6, 0.8], "clipped")
    assert_near(small, [0.3, 0.4], "not clipped")


def test_adam_mini_moves_a_tensor_as_a_whole(backend: str) -> None:
    w, v = np.zeros(2), np.zeros(2)
    CLASSES["adam_mini"]([w, v], lr=1.0, eps=0.0, backend=backend).step(
        [np.array([3.0, 4.0]), np.array([-1e-6, 0])]
    )
    assert_near(w, -np.array([3.0, 4.0]) / np.sqrt(12.5), "in the gradient's direction")
    assert_near(v, [np.sqrt(2), 0], "whatever its size")


@pytest.mark.parametrize("name", ["prodigy", "dadapt_adamw"])
def test_without_gradients_the_estimate_stays(name: str, backend: str) -> None:
    w = np.ones(3)
    optimizer = CLASSES[name](w, d0=0.25, backend=backend)
    optimizer.step(np.zeros(3))
    assert optimizer.shared["d"] == 0.25
    assert list(w) == [1.0] * 3


@pytest.mark.parametrize("name", ["prodigy", "dadapt_adamw"])
def test_the_estimate_finds_the_distance(name: str, backend: str) -> None:
    """|w| from 5: with only signs to go by it must come from d0 to the order of 5."""
    w, v = np.full(4, 5.0), np.full(2, -5.0)
    optimizer = CLASSES[name]([w, v], backend=backend)
    d = [optimizer.shared["d"]]
    for _ in range(300):
        optimizer.step([np.sign(w), np.sign(v)])
        d.append(optimizer.shared["d"])
    assert d == sorted(d)
    assert d[0] == 1e-6
    assert 0.5 < d[-1] < 20


@pytest.mark.parametrize("name", ["prodigy", "dadapt_adamw"])
def test_growth_is_limited(name: str, backend: str) -> None:
    w = np.full(4, 5.0)
    optimizer = CLASSES[name](w, growth_rate=1.5, backend=backend)
    d = [optimizer.shared["d"]]
    for _ in range(40):
        optimizer.step(np.sign(w))
        d.append(optimizer.shared["d"])
    growth = [new / old for old, new in pairwise(d) if old != d[0]]  # from d0 itself it may jump
    assert max(growth) == pytest.approx(1.5)


def test_dog_begins_with_a_step_beside_the_norm_of_all(backend: str) -> None:
    w, v = np.array([3.0, 0.0]), np.array([4.0])
    optimizer = CLASSES["dog"]([w, v], reps_rel=0.01, eps=0, backend=backend)
    optimizer.step([np.array([0.0, 7.0]), np.array([0.0])])
    assert_near(w, [3.0, -0.06], "first step, 0.01*(1 + 5)")
    assert optimizer.shared["max_distance"] == pytest.approx(0.06)
    optimizer.step([np.array([0.0, 7.0]), None])
    assert optimizer.shared["max_distance"] == pytest.approx(0.06)
    assert optimizer.shared["grad_sum_sq"] == pytest.approx(2 * 49)


def test_ldog_is_dog_of_one_tensor(backend: str) -> None:
    pair = [np.array([3.0, 1.0]), np.array([4.0])]
    alone = [w.copy() for w in pair]
    optimizers = [CLASSES["dog"](w, average=True, backend=backend) for w in alone]
    together = CLASSES["ldog"](pair, average=True, backend=backend)
    for g in GRADIENTS:
        together.step([g[:2], g[2:3]])
        for optimizer, part in zip(optimizers, (g[:2], g[2:3]), strict=True):
            optimizer.step(part)
    for a, b in zip(pair, alone, strict=True):
        assert np.array_equal(a, b)


def test_dog_s_average_without_forgetting_is_the_mean(backend: str) -> None:
    w = np.array([3.0, 1.0])
    optimizer = CLASSES["dog"](w, reps_rel=0.3, gamma=0, average=True, backend=backend)
    seen = []
    for g in GRADIENTS:
        optimizer.step(g[:2])
        seen.append(w.copy())
        (mean,) = optimizer.state["average_param"].values()
        assert_near(mean, np.mean(seen, axis=0), "average")
