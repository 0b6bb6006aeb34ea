"""NovoGrad, Algorithm 1 of arXiv 1905.11286, with epsilon at the first update, too."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

CASES = (
    Case("without_memory", {"lr": 0.05, "beta1": 0.0, "beta2": 0.0, "eps": 0.1, "weight_decay": 0.3}),
    Case("amsgrad", {"lr": 0.05, "beta2": 0.5, "eps": 0.1}, {"amsgrad": True, "grad_averaging": True}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "all": []}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    if t == 1:
        v = np.sum(g * g)
    else:
        v = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * np.sum(g * g)
    state["exp_avg_sq"] = v
    state["all"] = [*state["all"], v]
    state["max_exp_avg_sq"] = max(state["all"])
    root = np.sqrt(state["max_exp_avg_sq"] if s["amsgrad"] else v)
    decoupled = s["decoupled_weight_decay"]
    new = g / (root + s["eps"]) + (0.0 if decoupled else s["weight_decay"] * w)
    m = state["exp_avg"] = (
        s["beta1"] * state["exp_avg"] + (1 - s["beta1"] if s["grad_averaging"] else 1) * new
    )
    return (1 - s["lr"] * s["weight_decay"] if decoupled else 1) * w - s["lr"] * m
