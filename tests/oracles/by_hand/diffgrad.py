"""diffGrad, arXiv 1909.11015; epsilon before the correction, as in the authors' code (diffGrad_v2)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "previous_grad": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    b1, b2 = s["beta1"], s["beta2"]
    g = g + s["weight_decay"] * w
    change = state["previous_grad"] - g
    state["previous_grad"] = g
    friction = 0.5 * (1 + np.tanh(np.abs(change) / 2))  # the logistic function
    m = state["exp_avg"] = state["exp_avg"] * b1 + g * (1 - b1)
    v = state["exp_avg_sq"] = state["exp_avg_sq"] * b2 + g * g * (1 - b2)
    corrected = m * math.sqrt(1 - b2**t) / (1 - b1**t)
    return w - s["lr"] * friction * corrected / (np.sqrt(v) + s["eps"])
