"""Loshchilov and Hutter 2019, Algorithm 2, with alpha and eta as one lr and lr*weight_decay as its lambda."""

from __future__ import annotations

import numpy as np


def start(w, **_):
    return {name: np.zeros_like(w) for name in ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")}


def step(w, g, state, t, *, lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, **_):
    if maximize:
        g = -g
    state["exp_avg"] = beta1 * state["exp_avg"] + (1.0 - beta1) * g
    state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1.0 - beta2) * g * g
    state["max_exp_avg_sq"] = np.maximum(state["max_exp_avg_sq"], state["exp_avg_sq"])
    second = state["max_exp_avg_sq" if amsgrad else "exp_avg_sq"]
    m_hat, v_hat = state["exp_avg"] / (1.0 - beta1**t), second / (1.0 - beta2**t)
    return w - lr * (m_hat / (np.sqrt(v_hat) + eps) + weight_decay * w)
