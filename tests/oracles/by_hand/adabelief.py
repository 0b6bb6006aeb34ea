"""AdaBelief, Algorithm 2 of arXiv 2010.07468, with RAdam's rectification (arXiv 1908.03265) if wanted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.03, "beta1": 0.7, "beta2": 0.9, "eps": 1e-4, "eps_root": 1e-8, "weight_decay": 0.05}

CASES = (
    Case("two_epsilons_amsgrad", _ALL, {"amsgrad": True}),
    Case("two_epsilons_rectify", _ALL, {"rectify": True}),
    Case("two_epsilons_coupled", _ALL, {"decoupled_weight_decay": False}),
    Case("never_rectified", {**_ALL, "beta2": 0.5}, {"rectify": True}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_var": 0 * w, "max_exp_avg_var": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    b1, b2, decay = s["beta1"], s["beta2"], s.get("weight_decay", 0)
    if s["decoupled_weight_decay"]:
        w = w - s["lr"] * decay * w
    else:
        g = g + decay * w
    m = state["exp_avg"] = state["exp_avg"] * b1 + g * (1 - b1)
    belief = state["exp_avg_var"] = state["exp_avg_var"] * b2 + (g - m) ** 2 * (1 - b2) + s["eps_root"]
    largest = state["max_exp_avg_var"] = np.maximum(state["max_exp_avg_var"], belief)
    m_hat = m / (1 - b1**t)
    if not s["rectify"]:
        used = largest if s["amsgrad"] else belief
        return w - s["lr"] * m_hat / (np.sqrt(used / (1 - b2**t)) + s["eps"])
    rho_inf = 2 / (1 - b2) - 1
    rho = rho_inf - 2 * t * b2**t / (1 - b2**t)
    if rho < 5:
        return w - s["lr"] * m_hat
    r = math.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return w - s["lr"] * r * m_hat * math.sqrt(1 - b2**t) / (np.sqrt(belief) + s["eps"])
