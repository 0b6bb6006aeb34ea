"""Yogi, Algorithm 2 of "Adaptive Methods for Nonconvex Optimization", and with TensorFlow's corrections."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "initial_accumulator": 0.01}

CASES = (
    Case("paper", _ALL, {"bias_correction": False}),
    Case("paper_from_0", {**_ALL, "initial_accumulator": 0.0}, {"bias_correction": False}),
    Case("paper_decay", {**_ALL, "weight_decay": 0.07}, {"bias_correction": False}),
    Case("corrected_decay", {**_ALL, "weight_decay": 0.07}),
)


def start(w: np.ndarray, **s: Any) -> dict[str, Any]:
    v = np.full_like(w, s["initial_accumulator"])
    return {"exp_avg": v.copy() if s["bias_correction"] else 0 * w, "exp_avg_sq": v}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    b1, b2 = s["beta1"], s["beta2"]
    g = g + s.get("weight_decay", 0) * w
    m = state["exp_avg"] = state["exp_avg"] * b1 + g * (1 - b1)
    v = state["exp_avg_sq"]
    v = state["exp_avg_sq"] = np.where(v > g * g, v - (1 - b2) * g * g, v + (1 - b2) * g * g * (v != g * g))
    if s["bias_correction"]:
        m, v = m / (1 - b1**t), v / (1 - b2**t)
    return w - s["lr"] * m / (np.sqrt(v) + s["eps"])
