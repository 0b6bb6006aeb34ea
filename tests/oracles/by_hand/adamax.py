"""Kingma and Ba 2015, Algorithm 2, with an epsilon beside the gradient's size."""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {"exp_avg": np.zeros_like(w), "exp_inf": np.zeros_like(w)}


def step(w, g, state, t, *, lr, beta1, beta2, eps, weight_decay, maximize, **_):
    g = (-g if maximize else g) + weight_decay * w
    state["exp_avg"] = beta1 * state["exp_avg"] + (1.0 - beta1) * g
    state["exp_inf"] = np.maximum(beta2 * state["exp_inf"], np.abs(g) + eps)
    return w - (lr / (1.0 - beta1**t)) * state["exp_avg"] / state["exp_inf"]
