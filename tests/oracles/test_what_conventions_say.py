"""Sentences under `conventions` that no trajectory of another package can show."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

pytestmark = pytest.mark.parametrize("backend", HOST_BACKENDS)


def after(name: str, gradients: list[list[float]], backend: str, dtype: str = "float64", **settings: object):
    """The optimizer and what the parameter (zeros at first) went through."""
    w = np.zeros(len(gradients[0]), dtype)
    optimizer = CLASSES[name](w, backend=backend, **settings)
    seen = []
    for g in gradients:
        optimizer.step(np.array(g, dtype))
        seen.append(w.copy())
    return optimizer, np.array(seen)


def test_adagrad_leaves_an_element_without_gradients_alone(backend: str) -> None:
    _, seen = after("adagrad", [[0.0, 2.0], [0.0, -1.0]], backend, lr=0.5)
    assert (seen[:, 0] == 0).all()
    assert_near(seen[0, 1], -0.5, "the first step has the size of lr", tolerance=1e-9)


@pytest.mark.parametrize(("centered", "size"), [(False, 1 / np.sqrt(0.1)), (True, 1 / np.sqrt(0.9 * 0.1))])
def test_rmsprop_s_first_step_is_the_same_for_any_gradient(backend: str, centered: bool, size: float) -> None:
    settings = {"lr": 1.0, "alpha": 0.9, "eps": 0.0, "centered": centered}
    _, seen = after("rmsprop", [[1e-7, -3e5]], backend, **settings)
    assert_near(seen[0], [-size, size], "first step")


@pytest.mark.parametrize("name", ["rmsprop", "rmsprop_tf"])
def test_a_variance_of_nothing_is_not_negative(name: str, backend: str) -> None:
    """The same gradient for long: its mean square less its squared mean is rounding, of either sign."""
    constant = [[0.1, 0.3, -0.7, 1e-3, 123.4, 3e-5, 0.9, 5.5]] * 400
    _, seen = after(name, constant, backend, "float32", centered=True, alpha=0.9, eps=1e-12)
    assert np.isfinite(seen).all()


def test_rmsprop_tf_keeps_old_learning_rates_in_its_momentum_unless_told_otherwise(backend: str) -> None:
    for inside, moves in ((True, True), (False, False)):
        w = np.zeros(1)
        optimizer = CLASSES["rmsprop_tf"](w, lr=1.0, momentum=0.5, lr_in_momentum=inside, backend=backend)
        optimizer.step(np.ones(1))
        optimizer.lr = 0.0
        before = w.copy()
        optimizer.step(np.ones(1))
        assert (w != before).all() == moves


@pytest.mark.parametrize("name", ["rmsprop", "rmsprop_tf", "signsgd"])
def test_momentum_needs_its_buffer(name: str, backend: str) -> None:
    optimizer = CLASSES[name](np.zeros(2), backend=backend)
    assert "momentum_buffer" not in optimizer.state
    with pytest.raises(SolvergenError, match="use_momentum=True"):
        optimizer.momentum = 0.9
    optimizer = CLASSES[name](np.zeros(2), backend=backend, use_momentum=True)
    optimizer.momentum = 0.9
    assert "momentum_buffer" in optimizer.state


def test_asgd_s_average_is_the_mean_of_the_parameters_since_t0(backend: str) -> None:
    rng = np.random.default_rng(3)
    t0 = 4
    w = rng.normal(size=5)
    optimizer = CLASSES["asgd"](w, lr=0.3, t0=t0, backend=backend)
    seen = []
    for t in range(1, 30):
        optimizer.step(rng.normal(size=5))
        seen.append(w.copy())
        expected = seen[-1] if t <= t0 + 2 else np.mean(seen[t0 + 1 :], axis=0)
        (average,) = optimizer.state["ax"].values()
        assert_near(average, expected, f"average after update {t}")


def test_asgd_takes_a_new_rate_at_once(backend: str) -> None:
    w = np.zeros(1)
    optimizer = CLASSES["asgd"](w, lr=1.0, lambd=0.0, backend=backend)
    optimizer.step(np.ones(1))
    optimizer.lr = 0.25
    optimizer.step(np.ones(1))
    assert w[0] == -1.25


def test_rprop_knows_the_sign_of_small_gradients(backend: str) -> None:
    """Their product would be 0 in float32, and the step size would stay."""
    optimizer, seen = after("rprop", [[1e-30], [1e-30], [-1e-30]], backend, "float32", lr=1.0)
    sizes = np.diff(seen[:, 0], prepend=np.float32(0))
    assert_near(sizes, [-1.0, -1.2, 0.0], "steps", tolerance=1e-6)
    (size,) = optimizer.state["step_size"].values()
    assert_near(size, [0.6], "step size after the sign changed", tolerance=1e-6)


def test_rprop_s_lr_acts_only_at_the_beginning(backend: str) -> None:
    w = np.zeros(1)
    optimizer = CLASSES["rprop"](w, lr=1.0, backend=backend)
    optimizer.lr = 1e-3
    optimizer.step(np.ones(1))
    assert w[0] == -1.0


def test_rprop_s_range_of_steps_must_hold_something(backend: str) -> None:
    with pytest.raises(SolvergenError, match="min_step_size must not be above max_step_size"):
        CLASSES["rprop"](np.zeros(1), min_step_size=1.0, max_step_size=0.5, backend=backend)


def test_radam_steps_by_momentum_while_beta2_is_small(backend: str) -> None:
    _, seen = after("radam", [[1e-9, 5.0]] * 40, backend, lr=1.0, beta2=2 / 3)
    assert_near(seen[-1], [-40e-9, -200.0], "the mean of equal gradients")
    assert_near(seen[-1, 0], -40e-9, "the small one")


def test_signsgd_moves_every_element_by_lr(backend: str) -> None:
    _, seen = after("signsgd", [[1e-300, -1e300, 0.0, -0.0]], backend, lr=0.5)
    assert list(seen[0]) == [-0.5, 0.5, 0.0, 0.0]


@pytest.mark.parametrize("name", ["adamw", "nadam", "radam", "rmsprop_tf", "signsgd"])
def test_decoupled_decay_is_lr_times_weight_decay_and_enters_no_state(name: str, backend: str) -> None:
    option = {} if name == "adamw" else {"decoupled_weight_decay": True}
    w = np.array([2.0, -8.0])
    optimizer = CLASSES[name](w, lr=0.25, weight_decay=0.5, backend=backend, **option)
    before = {s: np.array(next(iter(optimizer.state[s].values()))) for s in optimizer.state}
    optimizer.step(np.zeros(2))
    assert list(w) == [1.75, -7.0]
    for state, values in before.items():
        now = np.array(next(iter(optimizer.state[state].values())))
        if values.shape and not (name == "rmsprop_tf" and state == "square_avg"):
            assert np.array_equal(now, values), state


@pytest.mark.parametrize(
    "name", ["adagrad", "rmsprop", "adadelta", "adamw", "adamax", "nadam", "radam", "asgd"]
)
def test_with_maximize_decay_still_shrinks(name: str, backend: str) -> None:
    """To ascend along a gradient is to descend along its negative; the decay is the same for both."""
    up, down = np.array([2.0, -8.0]), np.array([2.0, -8.0])
    g = np.array([0.5, 0.25])
    settings = {"lr": 0.1, "weight_decay": 0.5, "backend": backend}
    CLASSES[name](up, maximize=True, **settings).step(g)
    CLASSES[name](down, **settings).step(-g)
    assert np.array_equal(up, down)
