"""AdEMAMix of arXiv 2409.03137: Algorithm 1, and the schedules of its section 3."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {
    "lr": 0.02,
    "beta1": 0.8,
    "beta2": 0.9,
    "beta3": 0.99,
    "alpha": 2.0,
    "eps": 1e-5,
    "weight_decay": 0.05,
}

CASES = (
    Case("warmups", {**_ALL, "alpha_warmup": 12, "beta3_warmup": 17}),
    Case("beta1_0_warmups", {**_ALL, "beta1": 0.0, "alpha_warmup": 12, "beta3_warmup": 17}),
    Case("beta1_turned_off", _ALL, {"use_fast": True}, changes={6: {"beta1": 0.0}}),
    Case("beta3_0_warmup", {**_ALL, "beta3": 0.0, "beta3_warmup": 5}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg_fast": 0 * w, "exp_avg_slow": 0 * w, "exp_avg_sq": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    b1, b2, b3, alpha = s["beta1"], s["beta2"], s["beta3"], s["alpha"]
    if s.get("alpha_warmup", 0):
        alpha = min(t / s["alpha_warmup"], 1) * alpha
    if t < s.get("beta3_warmup", 0):
        # The half-life of a decay goes linearly from that of beta1 to that of beta3.
        share = t / s["beta3_warmup"]
        life = (1 - share) * half_life(b1) + share * half_life(b3)
        b3 = 0.5 ** (1 / life) if life else 0.0
    m1 = state["exp_avg_fast"] = state["exp_avg_fast"] * b1 + g * (1 - b1)
    m2 = state["exp_avg_slow"] = state["exp_avg_slow"] * b3 + g * (1 - b3)
    v = state["exp_avg_sq"] = state["exp_avg_sq"] * b2 + g * g * (1 - b2)
    m1_hat, v_hat = m1 / (1 - b1**t), v / (1 - b2**t)
    return w - s["lr"] * ((m1_hat + alpha * m2) / (np.sqrt(v_hat) + s["eps"]) + s["weight_decay"] * w)


def half_life(beta: float) -> float:
    return math.log(0.5) / math.log(beta) if beta else 0.0
