"""Schedule-Free AdamW: Algorithm 1 of arXiv 2405.15682 (correct_lr), and that of the authors' code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case
from tests.oracles.by_hand.schedule_free_sgd import average_weight

_ALL = {"lr": 0.03, "beta1": 0.7, "beta2": 0.9, "eps": 1e-4, "weight_decay": 0.05}
_CHANGES = {11: {"lr": 0.1}, 17: {"weight_decay": 2.0}, 21: {"lr": 30.0}}

CASES = (
    Case("paper", {**_ALL, "warmup_steps": 7}, {"correct_lr": True, "average": True}, changes=_CHANGES),
    Case("code", {**_ALL, "r": 0.5, "weight_lr_power": 1.2}, {"average": True}, changes=_CHANGES),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"z": w.copy(), "x": w.copy(), "exp_avg_sq": 0 * w, "weights": [], "rates": []}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    beta, unbiased = s["beta1"], 1 - s["beta2"] ** t
    rate = s["lr"] * min(1.0, t / s["warmup_steps"]) if s["warmup_steps"] else s["lr"]
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * g * g
    if s["correct_lr"]:
        rate *= np.sqrt(unbiased)
        direction = g / (np.sqrt(v) + s["eps"])
    else:
        direction = g / (np.sqrt(v / unbiased) + s["eps"])
    c = average_weight(state, t, rate, s)
    if beta != state.setdefault("beta", beta):
        state["x"] = (w - (1 - beta) * state["z"]) / beta  # another x belongs to this y
        state["beta"] = beta
    z = state["z"] = state["z"] - rate * (direction + s["weight_decay"] * w)
    x = state["x"] = (1 - c) * state["x"] + c * z
    return (1 - beta) * z + beta * x
