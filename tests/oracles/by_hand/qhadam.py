"""QHAdam, section 4 of arXiv 1810.06801, with each moment as the weighted mean of all gradients so far."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"seen": [], "beta1_weight": 0.0, "beta2_weight": 0.0}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    decay = s["weight_decay"]
    if s["decoupled_weight_decay"]:
        w = w - s["lr"] * decay * w
    else:
        g = g + decay * w
    # (gradient, its weight in the first moment, in the second); older ones count less by the decays since.
    state["seen"] = [(x, a * s["beta1"], b * s["beta2"]) for x, a, b in state["seen"]] + [(g, 1.0, 1.0)]
    state["beta1_weight"] = sum(a for _, a, _ in state["seen"])
    state["beta2_weight"] = sum(b for _, _, b in state["seen"])
    state["exp_avg"] = sum(a * x for x, a, _ in state["seen"]) / state["beta1_weight"]
    state["exp_avg_sq"] = sum(b * x * x for x, _, b in state["seen"]) / state["beta2_weight"]
    top = (1 - s["nu1"]) * g + s["nu1"] * state["exp_avg"]
    under = (1 - s["nu2"]) * g * g + s["nu2"] * state["exp_avg_sq"]
    return w - s["lr"] * top / (np.sqrt(under) + s["eps"])
