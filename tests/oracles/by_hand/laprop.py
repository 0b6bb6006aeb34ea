"""LaProp, Algorithm 1 of arXiv 2002.04839; of changing learning rates as the authors' code has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import CHANGES, Case

_ALL = {"lr": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-5, "weight_decay": 0.05}

CASES = (
    Case("amsgrad", _ALL, {"amsgrad": True}),
    Case("betas_change", _ALL, changes={**CHANGES, 5: {"beta1": 1.1, "beta2": 0.95}}),
    Case("begins_with_a_rate_of_0", {**_ALL, "lr": 0.0}),
    Case("ends_with_a_rate_of_0", _ALL, changes={8: {"lr": 0.0}}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    zeros = {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "max_exp_avg_sq": 0 * w}
    return {**zeros, "exp_avg_lr_1": 0.0, "exp_avg_lr_2": 0.0}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    mu, nu, rate = s["beta1"], s["beta2"], s["lr"]
    state["exp_avg_lr_1"] += (1 - mu) * (rate - state["exp_avg_lr_1"])
    state["exp_avg_lr_2"] += (1 - nu) * (1 - state["exp_avg_lr_2"])
    n = state["exp_avg_sq"] = state["exp_avg_sq"] * nu + g * g * (1 - nu)
    largest = state["max_exp_avg_sq"] = np.maximum(state["max_exp_avg_sq"], n)
    n_hat = (largest if s["amsgrad"] else n) / state["exp_avg_lr_2"]
    m = state["exp_avg"] = state["exp_avg"] * mu + g / (np.sqrt(n_hat) + s["eps"]) * rate * (1 - mu)
    if state["exp_avg_lr_1"] != 0:
        w = w - m / (state["exp_avg_lr_1"] / rate) if rate != 0 else w
    return w - rate * s["weight_decay"] * w
