"""Hinton's lecture 6, Graves 2013 equations 38 to 40 for centered; epsilon and rate outside."""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {name: np.zeros_like(w) for name in ("square_avg", "grad_avg", "momentum_buffer")}


def step(w, g, state, t, *, lr, alpha, eps, weight_decay, momentum, centered, maximize, **_):
    g = (-g if maximize else g) + weight_decay * w
    n = state["square_avg"] = (1.0 - alpha) * g * g + alpha * state["square_avg"]
    m = state["grad_avg"] = (1.0 - alpha) * g + alpha * state["grad_avg"]
    scaled = g / (np.sqrt(n - m * m if centered else n) + eps)
    state["momentum_buffer"] = momentum * state["momentum_buffer"] + scaled
    return w - lr * state["momentum_buffer"]
