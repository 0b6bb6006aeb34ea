"""Graves 2013, equations 38 to 41 (epsilon under the root, rate inside), as TensorFlow documents its ops."""

from __future__ import annotations

import numpy as np


def start(w, *, initial_square_avg, **_):
    zero = np.zeros_like(w)
    return {"square_avg": zero + initial_square_avg, "grad_avg": zero, "momentum_buffer": zero}


def step(
    w, g, state, t,
    *, lr, alpha, eps, weight_decay, momentum, centered, lr_in_momentum, decoupled_weight_decay, **_,
):  # fmt: skip
    if decoupled_weight_decay:
        w = w - lr * weight_decay * w
    else:
        g = g + weight_decay * w
    n = state["square_avg"] = alpha * state["square_avg"] + (1.0 - alpha) * g * g
    m = state["grad_avg"] = alpha * state["grad_avg"] + (1.0 - alpha) * g
    scaled = g / np.sqrt((n - m * m if centered else n) + eps)
    inside, outside = (lr, 1.0) if lr_in_momentum else (1.0, lr)
    state["momentum_buffer"] = momentum * state["momentum_buffer"] + inside * scaled
    return w - outside * state["momentum_buffer"]
