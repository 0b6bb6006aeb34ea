"""Grokfast-EMA (arXiv 2405.20233) before AdamW, the slow gradient as one weighted sum."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

CASES = (
    Case("without_memory", {"lr": 0.02, "alpha": 0.0, "lamb": 1.5, "eps": 1e-3}),
    Case("nothing_new", {"lr": 0.02, "alpha": 1.0, "lamb": 1.5, "eps": 1e-3}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "all": [], "alphas": []}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    state["all"], state["alphas"] = [*state["all"], g], [*state["alphas"], s["alpha"]]
    # The first gradient has all of the weight that the later ones don't take.
    weights = [(1 - a) * np.prod(state["alphas"][i + 1 :]) for i, a in enumerate(state["alphas"])]
    weights[0] = np.prod(state["alphas"][1:])
    slow = state["grad_avg"] = sum(c * x for c, x in zip(weights, state["all"], strict=True))
    g = g + s["lamb"] * slow
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * g
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * g * g
    m_hat, v_hat = m / (1 - s["beta1"] ** t), v / (1 - s["beta2"] ** t)
    return w - s["lr"] * (m_hat / (np.sqrt(v_hat) + s["eps"]) + s["weight_decay"] * w)
