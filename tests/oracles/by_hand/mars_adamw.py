"""MARS-AdamW, Algorithm 2 of arXiv 2411.10438 in its approximate form; its first two points are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

CASES = (
    Case("without_momentum", {"lr": 0.02, "beta1": 0.0, "gamma": 0.5, "eps": 1e-3, "weight_decay": 0.1}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "last_grad": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    before = g if t == 1 else state["last_grad"]
    state["last_grad"] = g
    b1, b2 = s["beta1"], s["beta2"]
    c = g + s["gamma"] * b1 / (1 - b1) * (g - before)
    size = np.linalg.norm(c.reshape(-1))
    c = c / size if size > 1 else c
    m = state["exp_avg"] = b1 * state["exp_avg"] + (1 - b1) * c
    v = state["exp_avg_sq"] = b2 * state["exp_avg_sq"] + (1 - b2) * c * c
    m_hat, v_hat = m / (1 - b1**t), v / (1 - b2**t)
    return w - s["lr"] * (m_hat / (np.sqrt(v_hat) + s["eps"]) + s["weight_decay"] * w)
