"""The six Caffe optimizers against its formulas: 40 steps, changing rates, both penalties, multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden.data import gradients, parameters
from tests.oracles.caffe_rules import RULES, Weights
from tests.oracles.comparing import assert_near
from tests.support.shipped import CLASSES, HOST_BACKENDS

STEPS = 40


def rate(step: int) -> float:
    """An lr policy with drops: in Caffe's SGD a drop decays through the history."""
    return 0.05 if step < 12 else 0.005 if step < 25 else 0.0125


@pytest.mark.parametrize("backend", HOST_BACKENDS)
@pytest.mark.parametrize("penalty", ["none", "L2", "L1"])
@pytest.mark.parametrize("choice", [0, 1])
@pytest.mark.parametrize("name", RULES)
def test_follows_caffe_s_formulas(name: str, choice: int, penalty: str, backend: str) -> None:
    rule, cls = RULES[name], CLASSES[name]
    settings = rule.settings[choice]
    decay = 0.0 if penalty == "none" else 0.3

    start = parameters()
    start["u"][1] = 0.0  # the sign of 0 is 0: L1 leaves it to the gradient
    # Multipliers as in a prototxt: the bias learns twice as fast and doesn't decay.
    expected = {
        n: Weights(rule, w.copy(), *((2.0, 0.0) if n == "b" else (1.0, 1.0))) for n, w in start.items()
    }
    ours = {n: np.array(w) for n, w in start.items()}
    optimizer = cls(
        [
            {"params": {"w": ours["w"], "u": ours["u"]}},
            {"params": {"b": ours["b"]}, "lr_mult": 2.0, "decay_mult": 0.0},
        ],
        lr=rate(1),
        weight_decay=decay,
        l1=penalty == "L1",
        backend=backend,
        **settings,
    )
    for step in range(1, STEPS + 1):
        g = gradients(step)
        if step == 5:
            g["u"] = np.zeros(3)
        optimizer.lr = rate(step)
        optimizer.step([g["w"], g["u"], g["b"]])
        for tensor, weights in expected.items():
            if g[tensor] is not None:
                # Caffe counts one t for all; a tensor that always has a gradient sees the same one.
                weights.step(g[tensor], rate(step), settings, decay, penalty)
            assert_near(ours[tensor], weights.w, f"{name} {tensor} step {step}")
            for blob, state in enumerate(cls.definition.array_states):
                assert_near(optimizer.state[state][tensor], weights.history[blob], f"{state} {tensor} {step}")


def test_an_lr_drop_decays_through_old_momentum() -> None:
    """The learning rate stands inside Caffe's history: momentum built up at rate 1 lives on at rate 0."""
    w = np.array([0.0])
    optimizer = CLASSES["caffe_sgd"](w, lr=1.0, momentum=0.5, backend="numpy")
    optimizer.step(np.array([1.0]))
    optimizer.lr = 0.0
    optimizer.step(np.array([1.0]))
    optimizer.step(np.array([1.0]))
    assert w[0] == -(1.0 + 0.5 + 0.25)


def test_momentum_is_zero_unless_given() -> None:
    """Caffe's momentum has no default: AdaDelta without memory and Adam with beta1 = 0."""
    for name in ("caffe_sgd", "caffe_nesterov", "caffe_adadelta", "caffe_adam"):
        assert CLASSES[name](np.zeros(1), backend="numpy").momentum == 0.0
