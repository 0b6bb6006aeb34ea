"""Igel and Hüsken 2003, iRprop-: element by element."""

from __future__ import annotations

import numpy as np


def start(w, *, lr, **_):
    return {"prev": np.zeros_like(w), "step_size": np.full_like(w, lr)}


def step(w, g, state, t, *, eta_minus, eta_plus, min_step_size, max_step_size, maximize, **_):
    w, prev, size = (np.array(x) for x in (w, state["prev"], state["step_size"]))
    for i in np.ndindex(w.shape):
        slope = -float(g[i]) if maximize else float(g[i])
        last, delta = float(prev[i]), float(size[i])
        if (slope > 0 and last > 0) or (slope < 0 and last < 0):
            delta = delta * eta_plus
        elif (slope > 0 and last < 0) or (slope < 0 and last > 0):
            delta, slope = delta * eta_minus, 0.0
        delta = min(max(delta, min_step_size), max_step_size)
        if slope != 0:
            w[i] -= delta if slope > 0 else -delta
        prev[i], size[i] = slope, delta
    state.update(prev=prev, step_size=size)
    return w
