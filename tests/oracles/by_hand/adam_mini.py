"""Adam-mini, Algorithm 1 of arXiv 2406.16793, a tensor being one block or as many as are given."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, blocks: int = 1, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": np.zeros(blocks)}


def step(
    w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, blocks: int = 1, **s: Any
) -> np.ndarray:
    w = w - s["lr"] * s["weight_decay"] * w
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * g
    of_blocks = np.array([np.mean(block * block) for block in np.split(g.reshape(-1), blocks)])
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * of_blocks
    m_hat, v_hat = m / (1 - s["beta1"] ** t), v / (1 - s["beta2"] ** t)
    rate = s["lr"] / (np.sqrt(v_hat) + s["eps"])
    return w - np.repeat(rate, g.size // blocks).reshape(w.shape) * m_hat
