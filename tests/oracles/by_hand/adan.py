"""Adan, Algorithm 1 of arXiv 2208.06677 in the authors' letters (1 - beta), with their code's corrections."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_diff": 0 * w, "exp_avg_sq": 0 * w, "last": None}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    keep1, keep2, keep3 = s["beta1"], s["beta2"], s["beta3"]
    change = 0 * g if state["last"] is None else g - state["last"]
    m = state["exp_avg"] = state["exp_avg"] * keep1 + g * (1 - keep1)
    v = state["exp_avg_diff"] = state["exp_avg_diff"] * keep2 + change * (1 - keep2)
    n = state["exp_avg_sq"] = state["exp_avg_sq"] * keep3 + (g + keep2 * change) ** 2 * (1 - keep3)
    state["last"], state["neg_pre_grad"] = g, -g
    eta = s["lr"] / (np.sqrt(n / (1 - keep3**t)) + s["eps"])
    moved = eta * (m / (1 - keep1**t) + keep2 * v / (1 - keep2**t))
    shrink = s["lr"] * s["weight_decay"]
    return w - shrink * w - moved if s["no_prox"] else (w - moved) / (1 + shrink)
