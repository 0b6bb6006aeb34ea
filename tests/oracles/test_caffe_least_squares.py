"""Caffe's own solver tests, as far as they concern the update rules: least squares, step by step.

Each is inductive: run K steps, work out from that state what step K+1 must give, take the step. The
gradient of the run comes from a forward and a backward pass; the expected one from the normal equations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from tests.oracles.caffe_rules import RULES, regularised
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

ROWS, FEATURES, BATCH = 8, 300, 4


@dataclass(frozen=True)
class Case:
    """A row of Caffe's table: what the solver is given, and how many steps come before the one checked."""

    name: str
    rule: str
    lr: float
    decay: float
    momentum: float
    before: tuple[int, ...]
    passes: int = 1

    def settings(self) -> dict[str, float]:
        """The rule's own hyperparameters. Caffe's RMSProp tests take rms_decay 0.95."""
        values = {"momentum": self.momentum, "momentum2": 0.999, "rms_decay": 0.95, "delta": 1e-8}
        return {name: values[name] for name in RULES[self.rule].settings[0]}


ONE, MANY, AFTER_FOUR = (0,), (0, 1, 2, 3, 4), (4,)

TABLE = (
    Case("SGD", "caffe_sgd", 1.0, 0.0, 0.0, ONE),
    Case("SGD-LROneHundredth", "caffe_sgd", 0.01, 0.0, 0.0, ONE),
    Case("SGD-WithWeightDecay", "caffe_sgd", 0.01, 0.5, 0.0, (0, 1)),
    Case("SGD-WithWeightDecayMultiIter", "caffe_sgd", 0.01, 0.5, 0.0, MANY),
    Case("SGD-WithMomentum", "caffe_sgd", 0.01, 0.0, 0.5, (0, 1)),
    Case("SGD-WithMomentumMultiIter", "caffe_sgd", 0.01, 0.0, 0.5, MANY),
    Case("SGD-WithEverything", "caffe_sgd", 0.01, 0.5, 0.5, MANY),
    Case("SGD-WithEverythingAccum", "caffe_sgd", 0.01, 0.5, 0.9, AFTER_FOUR, passes=2),
    Case("AdaGrad", "caffe_adagrad", 1.0, 0.0, 0.0, ONE),
    Case("AdaGrad-LROneHundredth", "caffe_adagrad", 0.01, 0.0, 0.0, ONE),
    Case("AdaGrad-WithWeightDecay", "caffe_adagrad", 0.01, 0.5, 0.0, ONE),
    Case("AdaGrad-WithEverything", "caffe_adagrad", 0.01, 0.5, 0.0, MANY),
    Case("AdaGrad-WithEverythingAccum", "caffe_adagrad", 0.01, 0.5, 0.0, AFTER_FOUR, passes=2),
    Case("Nesterov", "caffe_nesterov", 1.0, 0.0, 0.0, ONE),
    Case("Nesterov-LROneHundredth", "caffe_nesterov", 0.01, 0.0, 0.0, ONE),
    Case("Nesterov-WithWeightDecay", "caffe_nesterov", 0.01, 0.5, 0.0, ONE),
    Case("Nesterov-WithWeightDecayMultiIter", "caffe_nesterov", 0.01, 0.5, 0.0, MANY),
    Case("Nesterov-WithMomentum", "caffe_nesterov", 0.01, 0.0, 0.5, (0, 1)),
    Case("Nesterov-WithMomentumMultiIter", "caffe_nesterov", 0.01, 0.0, 0.5, MANY),
    Case("Nesterov-WithEverything", "caffe_nesterov", 0.01, 0.5, 0.9, MANY),
    Case("Nesterov-WithEverythingAccum", "caffe_nesterov", 0.01, 0.5, 0.9, AFTER_FOUR, passes=2),
    Case("AdaDelta", "caffe_adadelta", 0.1, 0.0, 0.0, ONE),
    Case("AdaDelta-WithWeightDecay", "caffe_adadelta", 0.1, 0.5, 0.95, ONE),
    Case("AdaDelta-WithHalfMomentum", "caffe_adadelta", 0.1, 0.0, 0.5, ONE),
    Case("AdaDelta-WithMomentum", "caffe_adadelta", 0.1, 0.0, 0.95, ONE),
    Case("AdaDelta-WithMomentumMultiIter", "caffe_adadelta", 0.1, 0.0, 0.95, MANY),
    Case("AdaDelta-WithEverything", "caffe_adadelta", 0.1, 0.1, 0.95, MANY),
    Case("AdaDelta-WithEverythingAccum", "caffe_adadelta", 0.1, 0.1, 0.95, AFTER_FOUR, passes=2),
    Case("Adam", "caffe_adam", 0.01, 0.0, 0.9, ONE),
    Case("Adam-WithWeightDecay", "caffe_adam", 0.01, 0.5, 0.9, ONE),
    Case("Adam-WithEverything", "caffe_adam", 0.01, 0.5, 0.9, MANY),
    Case("Adam-WithEverythingAccum", "caffe_adam", 0.01, 0.5, 0.9, AFTER_FOUR, passes=2),
    Case("RMSProp-WithWeightDecay", "caffe_rmsprop", 1.0, 0.5, 0.0, ONE),
    Case("RMSProp-WithRmsDecay", "caffe_rmsprop", 0.01, 0.0, 0.0, MANY),
    Case("RMSProp-WithEverything", "caffe_rmsprop", 0.01, 0.5, 0.0, MANY),
    Case("RMSProp-WithEverythingAccum", "caffe_rmsprop", 0.01, 0.5, 0.0, AFTER_FOUR, passes=2),
)


def problem() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Data, targets, first weights and bias. Any data of this shape will do."""
    rng = np.random.default_rng(1701)
    data, targets = rng.normal(size=(ROWS, FEATURES)) * 0.02, rng.normal(size=ROWS)
    return data, targets, rng.normal(size=FEATURES), rng.normal(size=1)


def rows(iteration: int) -> slice:
    """The batch of an iteration (from 1): the halves of the data in turn."""
    return slice(0, BATCH) if iteration % 2 else slice(BATCH, ROWS)


def backward(x: np.ndarray, y: np.ndarray, w: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Gradients of the Euclidean loss of an inner product, by a forward and a backward pass."""
    top = (x @ w + b[0] - y) / len(y)
    return x.T @ top, top.sum(keepdims=True)


def gradients(
    case: Case, data: np.ndarray, targets: np.ndarray, iteration: int, w: np.ndarray, b: np.ndarray
) -> dict[str, np.ndarray]:
    """Gradients of an iteration's batch; with several passes those of its parts are averaged."""
    x, y = data[rows(iteration)], targets[rows(iteration)]
    w64, b64 = w.astype(np.float64), b.astype(np.float64)
    parts = [backward(x[i :: case.passes], y[i :: case.passes], w64, b64) for i in range(case.passes)]
    means = [sum(part) / case.passes for part in zip(*parts, strict=True)]
    return {"weights": means[0].astype(w.dtype), "bias": means[1].astype(b.dtype)}


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)])
@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.name)
def test_the_next_step_is_the_analytic_one(case: Case, dtype: str, tolerance: float, backend: str) -> None:
    data, targets, w0, b0 = problem()
    for before in case.before:
        w, b = w0.astype(dtype), b0.astype(dtype)
        optimizer = CLASSES[case.rule](
            {"weights": w, "bias": b},
            lr=case.lr,
            weight_decay=case.decay,
            backend=backend,
            **case.settings(),
        )

        for iteration in range(1, before + 1):
            optimizer.step(gradients(case, data, targets, iteration, w, b))

        # What the next step must give: weights and bias as one vector, the bias a weight of a 1.
        names = ("weights", "bias")
        theta = np.concatenate([w, b]).astype(np.float64)
        history = tuple(
            np.concatenate([optimizer.state[s][n] for n in names]).astype(np.float64)
            for s in optimizer.definition.array_states
        )
        x = np.hstack([data[rows(before + 1)], np.ones((BATCH, 1))])
        y = targets[rows(before + 1)]
        g = regularised((x.T @ x @ theta - x.T @ y) / BATCH, theta, case.decay, "L2")
        u, expected_history = RULES[case.rule].update(g, history, case.lr, before + 1, **case.settings())

        optimizer.step(gradients(case, data, targets, before + 1, w, b))
        assert_near(np.concatenate([w, b]), theta - u, "weights and bias", tolerance=tolerance)
        for s, expected in zip(optimizer.definition.array_states, expected_history, strict=True):
            found = np.concatenate([optimizer.state[s][n] for n in names])
            assert_near(found, expected, f"history: {s}", tolerance=tolerance)
