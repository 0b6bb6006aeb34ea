"""MADGRAD, Algorithm 1 of arXiv 2101.11075, with the decoupled decay of the authors' code."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np

from tests.golden.case import Case

CASES = (
    Case("a_rate_of_0", {"lr": 0.0, "momentum": 0.8, "eps": 1e-3, "weight_decay": 0.05}),
    Case("eps_0_without_momentum", {"lr": 0.02, "momentum": 0.0, "eps": 0.0}),
    Case(
        "momentum_turned_off",
        {"lr": 0.02, "momentum": 0.8, "eps": 1e-5},
        {"use_momentum": True},
        changes={9: {"momentum": 0.0}},
    ),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"grad_sum_sq": 0 * w, "s": 0 * w, "x0": w.copy()}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    decay, rate = s.get("weight_decay", 0), s["lr"] + s["eps"]
    decoupled = s["decoupled_weight_decay"]
    g = g if decoupled else g + decay * w
    weight = rate * math.sqrt(t)
    state["grad_sum_sq"] = state["grad_sum_sq"] + weight * g * g
    state["s"] = state["s"] + weight * g
    root = np.vectorize(lambda x: float(mpmath.cbrt(x)), otypes=[float])(state["grad_sum_sq"]) + s["eps"]
    z = state["x0"] - np.divide(state["s"], root, out=np.zeros_like(w), where=root > 0)
    c = 1 - s["momentum"]
    new = (1 - c) * w + c * z
    if decoupled and not s["use_momentum"]:
        state["x0"] = state["x0"] - rate * decay * w  # the start is found again from the decayed parameter
    return new - rate * decay * w if decoupled else new
