"""The update of Adam in NumPy.

g = where(maximize, -grad, grad)
g = where(weight_decay != 0, g + weight_decay*param, g)
m = beta1*m + (1 - beta1)*g
v = beta2*v + (1 - beta2)*g**2
when amsgrad: v_max = max(v_max, v)
denom = sqrt(where(amsgrad, v_max, v)/(1 - beta2**t)) + eps
param = param - lr*(m/(1 - beta1**t))/denom
"""

from __future__ import annotations

from typing import Any

from solvergen.runtime.reference_math import maximum, power, sqrt, where


def update(
    param: Any,
    grad: Any,
    m: Any,
    v: Any,
    v_max: Any,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    t: float,
    amsgrad: bool,
    maximize: bool,
    real: Any,
    rounded: Any,
) -> tuple[Any, ...]:
    """One step: the new param, m, v and v_max. Elements have the type ``real``."""
    g = where(maximize, -grad, grad)
    g = where(weight_decay != 0.0, g + weight_decay * param, g)
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * power(g, 2.0)
    if amsgrad:
        v_max = maximum(v_max, v)
    denom = sqrt(where(amsgrad, v_max, v) / (1 - power(beta2, t))) + eps
    param = rounded(param - lr * (m / (1 - power(beta1, t))) / denom)
    return param, m, v, v_max
