"""Bernstein et al. 2018, Algorithms 1 (signSGD) and 2 (Signum)."""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {"momentum_buffer": np.zeros_like(w)}


def step(w, g, state, t, *, lr, momentum, weight_decay, decoupled_weight_decay, maximize, **_):
    if maximize:
        g = -g
    if not decoupled_weight_decay:
        g = g + weight_decay * w
    state["momentum_buffer"] = momentum * state["momentum_buffer"] + (1.0 - momentum) * g
    shrunk = w * (1.0 - lr * weight_decay) if decoupled_weight_decay else w
    return shrunk - lr * np.sign(state["momentum_buffer"])
