"""Bottou 2012, section 5: the rate and the weight of the average, of the lr that is in force.

His formulas count updates from 0; the objective has a term lambd/2*|w|^2.
"""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {"ax": np.zeros_like(w)}


def step(w, g, state, t, *, lr, lambd, alpha, t0, weight_decay, maximize, **_):
    before = t - 1
    g = (-g if maximize else g) + weight_decay * w + lambd * w
    w = w - lr * (1.0 + lambd * lr * before) ** -alpha * g
    mu = 1.0 / max(1.0, before - t0)
    state["ax"] = (1.0 - mu) * state["ax"] + mu * w
    return w
