"""Schedule-Free SGD of arXiv 2405.15682, with the three sequences apart.

x is kept here (there it is found from y); the weights are those of the authors' code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_CHANGES = {11: {"lr": 0.1}, 17: {"weight_decay": 2.0}, 21: {"lr": 30.0}}

CASES = (
    Case("average", {"lr": 0.03, "momentum": 0.7, "weight_decay": 0.05}, {"average": True}, changes=_CHANGES),
    Case(
        "warmup_and_powers",
        {"lr": 0.03, "momentum": 0.7, "warmup_steps": 13, "r": 0.5, "weight_lr_power": 1.2},
        {"average": True},
        changes=_CHANGES,
    ),
    Case("a_rate_of_0", {"lr": 0.0, "momentum": 0.7}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"z": w.copy(), "x": w.copy(), "weights": [], "rates": []}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    beta = s["momentum"]
    rate = s["lr"] * min(1.0, t / s["warmup_steps"]) if s["warmup_steps"] else s["lr"]
    c = average_weight(state, t, rate, s)
    if beta != state.setdefault("beta", beta):
        state["x"] = (w - (1 - beta) * state["z"]) / beta  # another x belongs to this y
        state["beta"] = beta
    z = state["z"] = state["z"] - rate * (g + s["weight_decay"] * w)
    x = state["x"] = (1 - c) * state["x"] + c * z
    return (1 - beta) * z + beta * x


def average_weight(state: dict[str, Any], t: int, rate: float, s: dict[str, Any]) -> float:
    """c of this update, from the weights of all so far."""
    state["rates"] = [*state["rates"], rate]
    state["lr_max"] = max(state["rates"])
    weight = t ** s["r"] * state["lr_max"] ** s["weight_lr_power"]
    state["weights"] = [*state["weights"], weight]
    state["weight_sum"] = sum(state["weights"])
    return weight / state["weight_sum"] if state["weight_sum"] else 0.0
