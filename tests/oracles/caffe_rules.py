"""Caffe's six update rules as its sources state them, in float64 NumPy, for tests to compare with.

Nothing here comes from the specs. ``g`` is the gradient after regularisation, ``rate`` the learning rate
times ``lr_mult``; each function returns what is subtracted from the weights, and the new history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]
Update = tuple[Array, tuple[Array, ...]]


def regularised(g: Array, w: Array, decay: float, kind: str) -> Array:
    """The gradient with its penalty's: ``decay`` is weight_decay times decay_mult, ``kind`` L2 or L1."""
    if decay == 0:
        return g
    return g + decay * (np.sign(w) if kind == "L1" else w)


def sgd(g: Array, history: tuple[Array, ...], rate: float, t: int, *, momentum: float) -> Update:
    (h,) = history
    h = momentum * h + rate * g
    return h, (h,)


def nesterov(g: Array, history: tuple[Array, ...], rate: float, t: int, *, momentum: float) -> Update:
    (h,) = history
    new = momentum * h + rate * g
    return (1.0 + momentum) * new - momentum * h, (new,)


def adagrad(g: Array, history: tuple[Array, ...], rate: float, t: int, *, delta: float) -> Update:
    (h,) = history
    h = h + g * g
    return rate * g / (np.sqrt(h) + delta), (h,)


def rmsprop(
    g: Array, history: tuple[Array, ...], rate: float, t: int, *, rms_decay: float, delta: float
) -> Update:
    (h,) = history
    h = rms_decay * h + (1.0 - rms_decay) * g * g
    return rate * g / (np.sqrt(h) + delta), (h,)


def adadelta(
    g: Array, history: tuple[Array, ...], rate: float, t: int, *, momentum: float, delta: float
) -> Update:
    h, q = history
    h = momentum * h + (1.0 - momentum) * g * g
    d = g * np.sqrt((q + delta) / (h + delta))
    q = momentum * q + (1.0 - momentum) * d * d
    return rate * d, (h, q)


def adam(
    g: Array,
    history: tuple[Array, ...],
    rate: float,
    t: int,
    *,
    momentum: float,
    momentum2: float,
    delta: float,
) -> Update:
    m, v = history
    m = momentum * m + (1.0 - momentum) * g
    v = momentum2 * v + (1.0 - momentum2) * g * g
    correction = np.sqrt(1.0 - momentum2**t) / (1.0 - momentum**t)
    return rate * correction * m / (np.sqrt(v) + delta), (m, v)


@dataclass(frozen=True)
class Rule:
    """A rule, how many history blobs it has a parameter, and what it is run with here."""

    update: Callable[..., Update]
    blobs: int
    settings: tuple[Mapping[str, float], ...]


RULES: Mapping[str, Rule] = {
    "caffe_sgd": Rule(sgd, 1, ({"momentum": 0.0}, {"momentum": 0.85})),
    "caffe_nesterov": Rule(nesterov, 1, ({"momentum": 0.0}, {"momentum": 0.85})),
    "caffe_adagrad": Rule(adagrad, 1, ({"delta": 1e-8}, {"delta": 1e-3})),
    "caffe_rmsprop": Rule(
        rmsprop, 1, ({"rms_decay": 0.95, "delta": 1e-8}, {"rms_decay": 0.7, "delta": 1e-3})
    ),
    "caffe_adadelta": Rule(adadelta, 2, ({"momentum": 0.0, "delta": 1e-8}, {"momentum": 0.9, "delta": 1e-5})),
    "caffe_adam": Rule(
        adam,
        2,
        (
            {"momentum": 0.9, "momentum2": 0.999, "delta": 1e-8},
            {"momentum": 0.0, "momentum2": 0.95, "delta": 1e-4},
        ),
    ),
}
"""By the names of the specs. Caffe's blob i of a parameter is the i-th state of the spec."""


@dataclass
class Weights:
    """One parameter with its history, stepped by a rule."""

    rule: Rule
    w: Array
    lr_mult: float = 1.0
    decay_mult: float = 1.0
    t: int = 0
    history: tuple[Array, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.history = (np.zeros_like(self.w),) * self.rule.blobs

    def step(
        self, g: Array, lr: float, settings: Mapping[str, float], weight_decay: float = 0.0, kind: str = "L2"
    ) -> None:
        """Apply one update with the raw gradient ``g``."""
        self.t += 1
        g = regularised(g, self.w, weight_decay * self.decay_mult, kind)
        u, self.history = self.rule.update(g, self.history, lr * self.lr_mult, self.t, **settings)
        self.w = self.w - u
