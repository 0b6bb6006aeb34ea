"""Dozat 2016, Algorithm 2, with beta1 as the decay of m and without its factor beta2 on the second moment.

The products of the schedule are formed anew from all of its values at each update.
"""

from __future__ import annotations

from math import prod

import numpy as np


def start(w, **_):
    return {"exp_avg": np.zeros_like(w), "exp_avg_sq": np.zeros_like(w), "mu_product": 1.0, "all_mu": []}


def step(
    w, g, state, t,
    *, lr, beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize, **_,
):  # fmt: skip
    def mu(i):
        return beta1 * (1.0 - 0.5 * 0.96 ** (momentum_decay * i))

    if maximize:
        g = -g
    decay = lr * weight_decay * w if decoupled_weight_decay else 0.0
    if not decoupled_weight_decay:
        g = g + weight_decay * w
    state["all_mu"] = [*state["all_mu"], mu(t)]
    assert len(state["all_mu"]) == t
    state["mu_product"] = prod(state["all_mu"])
    m = state["exp_avg"] = beta1 * state["exp_avg"] + (1.0 - beta1) * g
    n = state["exp_avg_sq"] = beta2 * state["exp_avg_sq"] + (1.0 - beta2) * g * g
    m_hat = mu(t + 1) * m / (1.0 - prod([*state["all_mu"], mu(t + 1)]))
    g_hat = (1.0 - mu(t)) * g / (1.0 - state["mu_product"])
    return w - decay - lr * (m_hat + g_hat) / (np.sqrt(n / (1.0 - beta2**t)) + eps)
