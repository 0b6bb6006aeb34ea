"""Zeiler 2012, Algorithm 1, times a learning rate."""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {"square_avg": np.zeros_like(w), "acc_delta": np.zeros_like(w)}


def step(w, g, state, t, *, lr, rho, eps, weight_decay, maximize, **_):
    def rms(mean_square):
        return np.sqrt(mean_square + eps)

    g = (-g if maximize else g) + weight_decay * w
    state["square_avg"] = rho * state["square_avg"] + (1.0 - rho) * g**2
    dx = -rms(state["acc_delta"]) / rms(state["square_avg"]) * g
    state["acc_delta"] = rho * state["acc_delta"] + (1.0 - rho) * dx**2
    return w + lr * dx
