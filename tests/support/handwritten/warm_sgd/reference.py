"""The update of WarmSGD in NumPy.

mu = momentum*min(t/warmup, 1)
mu_product = mu_product*mu
g = grad + weight_decay*param + pull*(param - start)
d = g
when momentum_buffer: buf = mu*buf + g
when momentum_buffer: d = where(nesterov, g + mu*buf, buf)
param = param - lr/(1 - mu_product)*d
"""

from __future__ import annotations

from typing import Any

from solvergen.runtime.reference_math import divide, minimum, where


def update(
    param: Any,
    grad: Any,
    buf: Any,
    start: Any,
    mu_product: float,
    lr: float,
    momentum: float,
    weight_decay: float,
    pull: float,
    warmup: float,
    t: float,
    momentum_buffer: bool,
    nesterov: bool,
    real: Any,
    rounded: Any,
) -> tuple[Any, ...]:
    """One step: the new param, buf, start and mu_product. Elements have the type ``real``."""
    mu = momentum * minimum(divide(t, warmup), 1.0)
    mu_product = mu_product * mu
    g = grad + weight_decay * param + pull * (param - start)
    d = g
    if momentum_buffer:
        buf = mu * buf + g
    if momentum_buffer:
        d = where(nesterov, g + mu * buf, buf)
    param = rounded(param - divide(lr, 1 - mu_product) * d)
    return param, buf, start, mu_product
