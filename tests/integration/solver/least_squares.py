"""The problem of Caffe's own solver tests, and its updates worked out by hand: independent of the product.

Eight rows of 300 numbers and a target each, an inner product with a bias, half the mean of squared errors.
Batches are taken in file order and wrap around.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROWS, WIDTH, BATCH = 8, 300, 4
_rng = np.random.default_rng(1701)
DATA = _rng.standard_normal((ROWS, WIDTH))
TARGETS = _rng.standard_normal((ROWS, 1))


@dataclass(frozen=True)
class Settings:
    """The numbers of one of Caffe's tests; ``mu`` is momentum, ``count`` the iterations before the last."""

    solver: str
    lr: float
    decay: float
    mu: float
    counts: tuple[int, ...]
    delta: float = 1e-8
    rms_decay: float = 0.95
    momentum2: float = 0.999


def gradient(weights, bias, iteration, decay, data=DATA, targets=TARGETS):
    """Of the weights and the bias at iteration 0, 1, ..., in float64; the bias is decayed too."""
    rows = np.arange(iteration * BATCH, (iteration + 1) * BATCH) % ROWS
    x = np.concatenate([np.asarray(data, np.float64)[rows], np.ones((BATCH, 1))], axis=1)
    w = np.concatenate([weights.astype(np.float64).ravel(), bias.astype(np.float64).ravel()])
    g = (x.T @ (x @ w - np.asarray(targets, np.float64)[rows].ravel())) / BATCH + decay * w
    return g[:WIDTH].reshape(weights.shape), g[WIDTH:]


def update(s: Settings, g, history, t):
    """What is subtracted and the new history, for one parameter; ``history`` lists its states."""
    lr, mu, delta = (float(np.float32(x)) for x in (s.lr, s.mu, s.delta))
    if s.solver == "SGD":
        h = lr * g + mu * history[0]
        return h, [h]
    if s.solver == "Nesterov":
        v = lr * g + mu * history[0]
        return (1 + mu) * v - mu * history[0], [v]
    if s.solver == "AdaGrad":
        h = history[0] + g**2
        return lr * g / (np.sqrt(h) + delta), [h]
    if s.solver == "RMSProp":
        rho = float(np.float32(s.rms_decay))
        h = rho * history[0] + (1 - rho) * g**2
        return lr * g / (np.sqrt(h) + delta), [h]
    if s.solver == "AdaDelta":
        h1 = mu * history[0] + (1 - mu) * g**2
        q = g * np.sqrt((history[1] + delta) / (h1 + delta))
        return lr * q, [h1, mu * history[1] + (1 - mu) * q**2]
    assert s.solver == "Adam"
    b2 = float(np.float32(s.momentum2))
    m = mu * history[0] + (1 - mu) * g
    v = b2 * history[1] + (1 - b2) * g**2
    return lr * np.sqrt(1 - b2**t) / (1 - mu**t) * m / (np.sqrt(v) + delta), [m, v]


TABLE = {
    "sgd-plain": Settings("SGD", 1.0, 0, 0, (0,)),
    "sgd-rate": Settings("SGD", 0.01, 0, 0, (0,)),
    "sgd-decay": Settings("SGD", 0.01, 0.5, 0, (0, 1, 2, 3, 4)),
    "sgd-momentum": Settings("SGD", 0.01, 0, 0.5, (0, 1, 2, 3, 4)),
    "sgd-everything": Settings("SGD", 0.01, 0.5, 0.5, (0, 1, 2, 3, 4)),
    "adagrad-plain": Settings("AdaGrad", 1.0, 0, 0, (0,)),
    "adagrad-rate": Settings("AdaGrad", 0.01, 0, 0, (0,)),
    "adagrad-decay": Settings("AdaGrad", 0.01, 0.5, 0, (0,)),
    "adagrad-everything": Settings("AdaGrad", 0.01, 0.5, 0, (0, 1, 2, 3, 4)),
    "nesterov-plain": Settings("Nesterov", 1.0, 0, 0, (0,)),
    "nesterov-rate": Settings("Nesterov", 0.01, 0, 0, (0,)),
    "nesterov-decay": Settings("Nesterov", 0.01, 0.5, 0, (0, 1, 2, 3, 4)),
    "nesterov-momentum": Settings("Nesterov", 0.01, 0, 0.5, (0, 1, 2, 3, 4)),
    "nesterov-everything": Settings("Nesterov", 0.01, 0.5, 0.9, (0, 1, 2, 3, 4)),
    "adadelta-plain": Settings("AdaDelta", 0.1, 0, 0, (0,)),
    "adadelta-decay": Settings("AdaDelta", 0.1, 0.5, 0.95, (0,)),
    "adadelta-half-momentum": Settings("AdaDelta", 0.1, 0, 0.5, (0, 1)),
    "adadelta-momentum": Settings("AdaDelta", 0.1, 0, 0.95, (0, 1, 2, 3, 4)),
    "adadelta-everything": Settings("AdaDelta", 0.1, 0.1, 0.95, (0, 1, 2, 3, 4)),
    "adam-plain": Settings("Adam", 0.01, 0, 0.9, (0,)),
    "adam-decay": Settings("Adam", 0.01, 0.5, 0.9, (0,)),
    "adam-everything": Settings("Adam", 0.01, 0.5, 0.9, (0, 1, 2, 3, 4)),
    "rmsprop-decay": Settings("RMSProp", 1.0, 0.5, 0, (0,)),
    "rmsprop-rms-decay": Settings("RMSProp", 0.01, 0, 0, (0, 1, 2, 3, 4)),
    "rmsprop-everything": Settings("RMSProp", 0.01, 0.5, 0, (0, 1, 2, 3, 4)),
}
"""Caffe's tests of a single update, each as many iterations in as ``counts`` says."""

SHARED = tuple(name for name in TABLE if name.endswith("everything"))
"""Those that Caffe also runs on a net whose two halves share their parameters."""

LONG = {
    "SGD": Settings("SGD", 0.01, 0.5, 0.9, (1, 2, 3, 4)),
    "AdaGrad": Settings("AdaGrad", 0.01, 0.5, 0, (1, 2, 3, 4)),
    "Nesterov": Settings("Nesterov", 0.01, 0.5, 0.9, (1, 2, 3, 4)),
    "AdaDelta": Settings("AdaDelta", 0.1, 0.1, 0.95, (1, 2, 3, 4)),
    "Adam": Settings("Adam", 0.01, 0.5, 0.9, (1, 2, 3, 4)),
    "RMSProp": Settings("RMSProp", 0.01, 0.5, 0, (1, 2, 3, 4)),
}
"""Those of accumulation and of snapshots."""

STATES = {"SGD": 1, "Nesterov": 1, "AdaGrad": 1, "RMSProp": 1, "AdaDelta": 2, "Adam": 2}
