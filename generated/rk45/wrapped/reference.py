"""The update of wrapped_rk45 in NumPy: the reference that every kernel is held to.

    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    param = (1 - lr*wrap_weight_decay)*param
    when wrap_write_update: wrap_before = param
    before = param
    k1 = grad
    param = before - lr*(1/5)*k1
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k2 = grad
    param = before - lr*((3/40)*k1 + (9/40)*k2)
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k3 = grad
    param = before - lr*((44/45)*k1 - (56/15)*k2 + (32/9)*k3)
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k4 = grad
    param = before - lr*((19372/6561)*k1 - (25360/2187)*k2 + (64448/6561)*k3 - (212/729)*k4)
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k5 = grad
    param = before - lr*((9017/3168)*k1 - (355/33)*k2 + (46732/5247)*k3 + (49/176)*k4 - (5103/18656)*k5)
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k6 = grad
    param = before - lr*((35/384)*k1 + (500/1113)*k3 + (125/192)*k4 - (2187/6784)*k5 + (11/84)*k6)
    gradient
    grad = where(wrap_maximize != 0, -1, 1)*where(wrap_clip_sum != 0, 1, wrap_normalize)/wrap_unscale*grad
    wrap_limit = where(wrap_max_value > 0, wrap_max_value, 1/abs(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    when wrap_clip_tensor: wrap_tensor_factor = min(1, wrap_max_tensor_norm/(norm2(grad) + wrap_clip_eps))
    when wrap_clip_tensor: grad = wrap_tensor_factor*grad
    when wrap_clip_global: wrap_norm = norm2(grad, all)
    when wrap_clip_global: wrap_factor = where(wrap_clip_sum != 0, where(wrap_norm > wrap_max_grad_norm, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps), 1), min(1, wrap_max_grad_norm/(wrap_norm + wrap_clip_eps)))
    when wrap_clip_global: grad = wrap_factor*grad
    grad = where(wrap_clip_sum != 0, wrap_normalize, 1)*grad
    grad = where(wrap_l2 != 0, grad + wrap_l2*param, grad)
    grad = where(wrap_l1 != 0, grad + wrap_l1*sign(param), grad)
    k7 = grad
    error = norm2(lr*((71/57600)*k1 - (71/16695)*k3 + (71/1920)*k4 - (17253/339200)*k5 + (22/525)*k6 - (1/40)*k7), all)
    param = before - lr*((35/384)*k1 + (500/1113)*k3 + (125/192)*k4 - (2187/6784)*k5 + (11/84)*k6)
    when wrap_write_update: wrap_update = wrap_before - param
    param = where(wrap_from_below != 0, max(param, wrap_low), param)
    param = where(wrap_from_above != 0, min(param, wrap_high), param)
    when wrap_keep_average: wrap_average = wrap_average_decay*wrap_average + (1 - wrap_average_decay)*param
    when wrap_keep_bfloat16: wrap_bfloat16 = param
    when wrap_keep_float16: wrap_float16 = param
    when wrap_write_update: grad = wrap_update

Generated by solvergen from specs/rk45.yaml and templates/numpy/reference.py.j2: edit those instead.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from solvergen.runtime.reference_math import (
    absolute,
    clip,
    divide,
    gradient,
    maximum,
    minimum,
    norm2,
    over_all,
    sign,
)


def update(
    param: Any,
    grad: Any,
    wrap_average: Any,
    wrap_bfloat16: Any,
    wrap_float16: Any,
    error: float,
    wrap_norm: float,
    lr: float,
    wrap_every: float,
    wrap_mean: float,
    wrap_normalize: float,
    wrap_clip_sum: float,
    wrap_maximize: float,
    wrap_unscale: float,
    wrap_max_value: float,
    wrap_max_tensor_norm: float,
    wrap_max_grad_norm: float,
    wrap_clip_eps: float,
    wrap_l2: float,
    wrap_l1: float,
    wrap_weight_decay: float,
    wrap_from_below: float,
    wrap_low: float,
    wrap_from_above: float,
    wrap_high: float,
    wrap_average_decay: float,
    t: float,
    wrap_clip_tensor: bool,
    wrap_clip_global: bool,
    wrap_keep_average: bool,
    wrap_write_update: bool,
    wrap_keep_bfloat16: bool,
    wrap_keep_float16: bool,
    real: Any,
    rounded: Any,
) -> Generator[Any, float, tuple[Any, ...]]:
    """One update: returns the new param, wrap_average, wrap_bfloat16, wrap_float16, error, wrap_norm, grad.

    Arrays of elements have the compute type ``real``; scalars are Python floats, which NumPy rounds
    to it where they meet. State that does not exist under the options is None.
    """
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all = yield over_all("norm2", 0, grad)
        wrap_norm = norm2_grad_all
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    param = rounded((1 - lr * wrap_weight_decay) * param)
    if wrap_write_update:
        wrap_before = param
    before = param  # specs/rk45.yaml:19
    k1 = grad  # specs/rk45.yaml:19
    param = rounded(before - lr * (1.0 / 5.0) * k1)  # specs/rk45.yaml:20
    grad = yield gradient(1, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_2 = yield over_all("norm2", 2, grad)
        wrap_norm = norm2_grad_all_2
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k2 = grad  # specs/rk45.yaml:20
    param = rounded(before - lr * (3.0 / 40.0 * k1 + 9.0 / 40.0 * k2))  # specs/rk45.yaml:21
    grad = yield gradient(3, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_3 = yield over_all("norm2", 4, grad)
        wrap_norm = norm2_grad_all_3
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k3 = grad  # specs/rk45.yaml:21
    param = rounded(before - lr * (44.0 / 45.0 * k1 - 56.0 / 15.0 * k2 + 32.0 / 9.0 * k3))  # specs/rk45.yaml:22
    grad = yield gradient(5, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_4 = yield over_all("norm2", 6, grad)
        wrap_norm = norm2_grad_all_4
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k4 = grad  # specs/rk45.yaml:22
    param = rounded(before - lr * (19372.0 / 6561.0 * k1 - 25360.0 / 2187.0 * k2 + 64448.0 / 6561.0 * k3 - 212.0 / 729.0 * k4))  # specs/rk45.yaml:23
    grad = yield gradient(7, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_5 = yield over_all("norm2", 8, grad)
        wrap_norm = norm2_grad_all_5
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k5 = grad  # specs/rk45.yaml:23
    param = rounded(before - lr * (9017.0 / 3168.0 * k1 - 355.0 / 33.0 * k2 + 46732.0 / 5247.0 * k3 + 49.0 / 176.0 * k4 - 5103.0 / 18656.0 * k5))  # specs/rk45.yaml:24
    grad = yield gradient(9, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_6 = yield over_all("norm2", 10, grad)
        wrap_norm = norm2_grad_all_6
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k6 = grad  # specs/rk45.yaml:24
    param = rounded(before - lr * (35.0 / 384.0 * k1 + 500.0 / 1113.0 * k3 + 125.0 / 192.0 * k4 - 2187.0 / 6784.0 * k5 + 11.0 / 84.0 * k6))  # specs/rk45.yaml:25
    grad = yield gradient(11, param)
    grad = divide((-1.0 if wrap_maximize != 0 else 1.0) * (1.0 if wrap_clip_sum != 0 else wrap_normalize), wrap_unscale) * grad
    wrap_limit = wrap_max_value if wrap_max_value > 0 else divide(1.0, absolute(wrap_max_value))
    grad = clip(grad, -wrap_limit, wrap_limit)
    if wrap_clip_tensor:
        wrap_tensor_factor = minimum(1.0, divide(wrap_max_tensor_norm, norm2(grad) + wrap_clip_eps))
        grad = wrap_tensor_factor * grad
    if wrap_clip_global:
        norm2_grad_all_7 = yield over_all("norm2", 12, grad)
        wrap_norm = norm2_grad_all_7
        wrap_factor = (divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps) if wrap_norm > wrap_max_grad_norm else 1.0) if wrap_clip_sum != 0 else minimum(1.0, divide(wrap_max_grad_norm, wrap_norm + wrap_clip_eps))
        grad = wrap_factor * grad
    grad = (wrap_normalize if wrap_clip_sum != 0 else 1.0) * grad
    grad = grad + wrap_l2 * param if wrap_l2 != 0 else grad
    grad = grad + wrap_l1 * sign(param) if wrap_l1 != 0 else grad
    k7 = grad  # specs/rk45.yaml:25
    norm2_all = yield over_all("norm2", 13, lr * (71.0 / 57600.0 * k1 - 71.0 / 16695.0 * k3 + 71.0 / 1920.0 * k4 - 17253.0 / 339200.0 * k5 + 22.0 / 525.0 * k6 - 1.0 / 40.0 * k7))
    error = norm2_all  # specs/rk45.yaml:27
    param = rounded(before - lr * (35.0 / 384.0 * k1 + 500.0 / 1113.0 * k3 + 125.0 / 192.0 * k4 - 2187.0 / 6784.0 * k5 + 11.0 / 84.0 * k6))  # specs/rk45.yaml:26
    if wrap_write_update:
        wrap_update = wrap_before - param
    param = rounded(maximum(param, wrap_low) if wrap_from_below != 0 else param)
    param = rounded(minimum(param, wrap_high) if wrap_from_above != 0 else param)
    if wrap_keep_average:
        wrap_average = wrap_average_decay * wrap_average + (1 - wrap_average_decay) * param
    if wrap_keep_bfloat16:
        wrap_bfloat16 = param
    if wrap_keep_float16:
        wrap_float16 = param
    if wrap_write_update:
        grad = wrap_update
    return param, wrap_average, wrap_bfloat16, wrap_float16, error, wrap_norm, grad
