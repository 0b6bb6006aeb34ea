"""The handwritten rules once more, one element at a time, written down apart from the generated form.

Every operation is one operation of NumPy scalars of the compute type, so it rounds as the language says.
"""

from __future__ import annotations

import math

import numpy as np


def whole_power(x: float, n: int) -> float:
    """Binary powering in float64."""
    r, b, first = 1.0, x, True
    while n:
        if n & 1:
            r = b if first else r * b
            first = False
        n >>= 1
        if n:
            b = b * b
    return r


def adam(
    param, grad, state, t, *, store, lr=0.001, beta1=0.9, beta2=0.999, eps=1e-8, weight_decay=0.0,
    amsgrad=False, maximize=False,
):  # fmt: skip
    """One element's step. ``state`` is a dict that is changed; ``store`` rounds to the storage type."""
    f = np.float64 if isinstance(param, np.float64) else np.float32
    with np.errstate(all="ignore"):
        g = -grad if maximize else grad
        if weight_decay != 0:
            g = g + f(weight_decay) * param
        state["m"] = f(beta1) * state["m"] + f(1 - beta1) * g
        state["v"] = f(beta2) * state["v"] + f(1 - beta2) * (g * g)
        v = state["v"]
        if amsgrad:
            old = state["v_max"]
            v = state["v_max"] = old if old > v or math.isnan(old) else v
        denom = np.sqrt(v / f(1 - whole_power(beta2, t))) + f(eps)
        return f(store(param - f(lr) * (state["m"] / f(1 - whole_power(beta1, t))) / denom))


def warm_sgd(
    param, grad, state, t, *, store, lr=0.1, momentum=0.9, weight_decay=0.0, pull=0.0, warmup=4,
    nesterov=False,
):  # fmt: skip
    """As ``adam``; ``state`` has buf, start and mu_product."""
    f = np.float64 if isinstance(param, np.float64) else np.float32
    mu = momentum * min(t / warmup, 1.0)
    state["mu_product"] = state["mu_product"] * mu
    with np.errstate(all="ignore"):
        g = grad + f(weight_decay) * param + f(pull) * (param - state["start"])
        d = g
        if "buf" in state:
            d = state["buf"] = f(mu) * state["buf"] + g
            if nesterov:
                d = g + f(mu) * state["buf"]
        return f(store(param - f(lr / (1 - state["mu_product"])) * d))
