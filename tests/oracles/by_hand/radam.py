"""Liu et al. 2020, Algorithm 2, with torch's epsilon and a threshold that the paper has at 4."""

from __future__ import annotations

import numpy as np

from tests.golden.case import Case


def start(w, **_):
    return {"exp_avg": np.zeros_like(w), "exp_avg_sq": np.zeros_like(w)}


def step(
    w, g, state, t,
    *, lr, beta1, beta2, eps, weight_decay, threshold, decoupled_weight_decay, maximize, **_,
):  # fmt: skip
    if maximize:
        g = -g
    decay = lr * weight_decay * w if decoupled_weight_decay else 0.0
    if not decoupled_weight_decay:
        g = g + weight_decay * w
    m = state["exp_avg"] = beta1 * state["exp_avg"] + (1.0 - beta1) * g
    v = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1.0 - beta2) * g * g
    m_hat = m / (1.0 - beta1**t)
    rho_inf = 2.0 / (1.0 - beta2) - 1.0
    rho = rho_inf - 2.0 * t * beta2**t / (1.0 - beta2**t)
    if rho <= threshold:
        return w - decay - lr * m_hat
    adaptive = np.sqrt(1.0 - beta2**t) / (np.sqrt(v) + eps)
    r = np.sqrt((rho - 4.0) * (rho - 2.0) * rho_inf / ((rho_inf - 4.0) * (rho_inf - 2.0) * rho))
    return w - decay - lr * r * m_hat * adaptive


CASES = (
    # Rectified within 32 steps, from one length on and from another, with an epsilon that matters.
    Case("threshold_4", {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-3, "threshold": 4.0}),
    Case("threshold_20", {"lr": 0.02, "beta1": 0.8, "beta2": 0.99, "eps": 1e-3, "threshold": 20.0}),
)
