"""Adam-mini, Algorithm 1 of arXiv 2406.16793, a tensor being a block."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0.0}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    w = w - s["lr"] * s["weight_decay"] * w
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * g
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * float(np.mean(g * g))
    m_hat, v_hat = m / (1 - s["beta1"] ** t), v / (1 - s["beta2"] ** t)
    return w - s["lr"] * m_hat / (np.sqrt(v_hat) + s["eps"])
