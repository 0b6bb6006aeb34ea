"""The update of lamb in NumPy.

norm = norm2(grad, all)
scale = where(norm > max_norm, max_norm/norm, 1)
when clip: usual = beta2*usual + (1 - beta2)*norm
g = where(clip, scale*grad, grad)
m = beta1*m + (1 - beta1)*g
v = beta2*v + (1 - beta2)*g**2
update = (m/(1 - beta1**t))/(sqrt(v/(1 - beta2**t)) + eps) + weight_decay*param
trust = where((norm2(param) > 0) and (norm2(update) > 0), norm2(param)/norm2(update), 1)
highest = max(highest, max_abs(update))
param = param - lr*trust*update
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from solvergen.runtime.reference_math import max_abs, norm2, over_all, power, sqrt


def update(
    param: Any,
    grad: Any,
    m: Any,
    v: Any,
    trust: float,
    highest: float,
    usual: float | None,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    max_norm: float,
    t: float,
    clip: bool,
    real: Any,
    rounded: Any,
) -> Generator[Any, float, tuple[Any, ...]]:
    """One step: the new param, m, v, trust, highest and usual. Elements have the type ``real``."""
    g = grad
    if clip:
        assert usual is not None
        norm = yield over_all("norm2", 0, grad)
        scale = max_norm / norm if norm > max_norm else 1.0
        usual = beta2 * usual + (1 - beta2) * norm
        g = scale * grad
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * power(g, 2.0)
    direction = m / (1 - power(beta1, t)) / (sqrt(v / (1 - power(beta2, t))) + eps) + weight_decay * param
    param_norm, update_norm, largest = norm2(param), norm2(direction), max_abs(direction)
    trust = param_norm / update_norm if param_norm > 0.0 and update_norm > 0.0 else 1.0
    highest = highest if highest > largest or highest != highest else largest
    param = rounded(param - lr * trust * direction)
    return param, m, v, trust, highest, usual
