"""ADOPT, Algorithm 2 (with clipping; without it Algorithm 1) of arXiv 2411.02853."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "clip_exp": 0.25, "weight_decay": 0.05}

CASES = (
    Case("paper", {**_ALL, "weight_decay": 0.0}),
    Case("everything", _ALL, {"nesterov": True, "decoupled_weight_decay": True, "maximize": True}),
    Case("bound_of_1", {**_ALL, "clip_exp": 0.0}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    b1, b2, decay = s["beta1"], s["beta2"], s.get("weight_decay", 0)
    g = -g if s["maximize"] else g
    decoupled = s["decoupled_weight_decay"]
    if not decoupled:
        g = g + decay * w
    if t == 1:  # the paper counts from 0 and has v_0 = g_0**2
        state["exp_avg_sq"] = g * g
        return w
    if decoupled:
        w = w - s["lr"] * decay * w
    new = g / np.maximum(np.sqrt(state["exp_avg_sq"]), s["eps"])
    if s["clip_gradient"]:
        c = (t - 1) ** s["clip_exp"]
        new = np.where(np.abs(new) > c, c * np.sign(new), new)
    m = state["exp_avg"] = state["exp_avg"] * b1 + new * (1 - b1)
    state["exp_avg_sq"] = state["exp_avg_sq"] * b2 + g * g * (1 - b2)
    return w - s["lr"] * (m * b1 + new * (1 - b1) if s["nesterov"] else m)
