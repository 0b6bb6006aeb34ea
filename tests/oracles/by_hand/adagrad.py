"""Duchi, Hazan and Singer 2011, figure 1 with a diagonal matrix: H = delta*I + diag(s)."""

from __future__ import annotations

import numpy as np


def start(w, *, initial_accumulator_value, **_):
    return {"state_sum": np.full_like(w, initial_accumulator_value)}


def step(w, g, state, t, *, lr, lr_decay, eps, weight_decay, maximize, **_):
    g = (-1.0 if maximize else 1.0) * g + weight_decay * w
    state["state_sum"] = state["state_sum"] + g * g
    rate = lr / (1.0 + (t - 1) * lr_decay)
    h = np.sqrt(state["state_sum"]) + eps
    return w - rate * g / h
