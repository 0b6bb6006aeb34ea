"""Four rules with reductions, as ``solvergen build`` would write their host programs and references. They
have no kernels: what runs them is the NumPy backend.

``Lamb``: norms of a tensor; an option without which there are none.
``ClippedSGD``: reductions over all tensors, two of them, each under an option of its own.
``NovoGrad``: a scalar state that depends on a reduction, and one that doesn't, whose names come in turn.
``DistanceSGD``: a shared state, which an option can leave out; it begins at a hyperparameter.
"""

from __future__ import annotations

import os
from typing import Any

from solvergen.runtime.definition import Definition, Hyperparameter, Option, Pass, State
from solvergen.runtime.optimizer import Optimizer
from solvergen.runtime.reference_math import dot, maximum, minimum, norm2, over_all, power, sqrt
from solvergen.runtime.scalars import divide

FOLDER = os.path.dirname(os.path.abspath(__file__))


class Handwritten(Optimizer):
    """An optimizer that takes hyperparameters and options by keyword, whichever its rule has."""

    def __init__(
        self, params: Any, *, backend: Any = "numpy", nonfinite: str = "propagate", **settings: Any
    ) -> None:
        names = self.definition.option_names
        super().__init__(
            params,
            hyperparameters={k: v for k, v in settings.items() if k not in names},
            options={k: v for k, v in settings.items() if k in names},
            backend=backend,
            nonfinite=nonfinite,
        )


def defined(name: str, class_name: str, **fields: Any) -> Definition:
    whole: dict[str, Any] = {
        "spec": f"specs/{name}.yaml",
        "digest": "0" * 64,
        "folder": FOLDER,
        "options_of": lambda **hyperparameters: {},
        "constraints": lambda **settings: None,
        "buffers_read": lambda **options: ("param", "grad"),
        "buffers_written": lambda **options: ("param",),
    }
    return Definition(name=name, class_name=class_name, **{**whole, **fields})


def _update_lamb(
    param, grad, m, v, lr, beta1, beta2, eps, weight_decay, t, trust, real, rounded
) -> tuple[Any, ...]:
    m = beta1 * m + (1 - beta1) * grad
    v = beta2 * v + (1 - beta2) * power(grad, 2)
    d = m / (1 - power(beta1, t)) / (sqrt(v / (1 - power(beta2, t))) + eps) + weight_decay * param
    if trust:
        w_norm = norm2(param)
        d_norm = norm2(d)
        ratio = divide(w_norm, d_norm) if w_norm > 0 and d_norm > 0 else 1.0
        param = rounded(param - lr * ratio * d)
    else:
        param = rounded(param - lr * d)
    return param, m, v


def _scalars_lamb(*, lr, beta1, beta2, eps, weight_decay, trust, t):
    row = (beta1, 1 - beta1, beta2, 1 - beta2, 1 - power(beta1, t), 1 - power(beta2, t), eps, weight_decay)
    return row, (lr,), {}


class Lamb(Handwritten):
    """Adam whose step is as long as the parameter."""

    definition = defined(
        "lamb",
        "Lamb",
        hyperparameters=(
            Hyperparameter("lr", default=0.01, min=0.0),
            Hyperparameter("beta1", default=0.9, min=0.0, below=1.0),
            Hyperparameter("beta2", default=0.99, min=0.0, below=1.0),
            Hyperparameter("eps", default=1e-6, min=0.0),
            Hyperparameter("weight_decay", default=0.1, min=0.0),
        ),
        options=(Option("trust", default=True),),
        state=(State("m"), State("v")),
        table=("beta1", "one_minus_beta1", "beta2", "one_minus_beta2", "c1", "c2", "eps", "weight_decay"),
        update=_update_lamb,
        scalars=_scalars_lamb,
        active_state=lambda *, trust: ("m", "v"),
        initial_state=lambda **settings: {"m": 0.0, "v": 0.0},
        wide=("lr",),
        n_values=1,
        passes=(Pass(0, ("norm2", "norm2"), ("tensor", "tensor")), Pass(2)),
        stages=(1,),
        active_passes=lambda *, trust: (0, 1),
        active_stages=lambda *, trust: (1,),
    )


def _update_clipped(param, grad, lr, max_norm, t, clip, center, real, rounded):
    g = grad
    if center:
        g = g - (yield over_all("mean", 0, grad))
    if clip:
        norm = yield over_all("norm2", 1, g)
        g = minimum(1.0, divide(max_norm, norm)) * g
    return (rounded(param - lr * g),)


class ClippedSGD(Handwritten):
    """Gradient descent; the gradients together are centered, and no longer than ``max_norm``."""

    definition = defined(
        "clipped_sgd",
        "ClippedSGD",
        hyperparameters=(
            Hyperparameter("lr", default=0.5, min=0.0),
            Hyperparameter("max_norm", default=1.0, min=0.0),
        ),
        options=(Option("clip", default=True), Option("center", default=False)),
        state=(),
        table=("lr",),
        update=_update_clipped,
        scalars=lambda *, lr, max_norm, clip, center, t: ((lr,), (max_norm,), {}),
        active_state=lambda *, clip, center: (),
        initial_state=lambda **settings: {},
        wide=("max_norm",),
        n_values=2,
        passes=(Pass(0, ("mean",), ("all",)), Pass(1, ("norm2",), ("all",)), Pass(2)),
        stages=(1, 2),
        active_passes=lambda *, clip, center: (*((0,) if center else ()), *((1,) if clip else ()), 2),
        active_stages=lambda *, clip, center: (*((1,) if center else ()), *((2,) if clip else ())),
        yields=True,
    )


def _update_novograd(param, grad, m, v, mu_product, last, lr, beta1, beta2, eps, t, real, rounded):
    square = dot(grad, grad)
    v = square if t == 1 else beta2 * v + (1 - beta2) * square
    mu_product = mu_product * beta1
    last = v
    m = beta1 * m + grad / (sqrt(v) + eps)
    return rounded(param - divide(lr, 1 - mu_product) * m), m, v, mu_product, last


def _scalars_novograd(*, lr, beta1, beta2, eps, t, mu_product):
    mu_product = mu_product * beta1
    return (beta1, divide(lr, 1 - mu_product)), (beta2, 1 - beta2, eps, t), {"mu_product": mu_product}


class NovoGrad(Handwritten):
    """Momentum of gradients by the norm that their tensor has had."""

    definition = defined(
        "novograd",
        "NovoGrad",
        hyperparameters=(
            Hyperparameter("lr", default=0.1, min=0.0),
            Hyperparameter("beta1", default=0.9, min=0.0, below=1.0),
            Hyperparameter("beta2", default=0.75, min=0.0, below=1.0),
            Hyperparameter("eps", default=1e-8, min=0.0),
        ),
        options=(),
        state=(
            State("m"),
            State("v", shape="scalar"),
            State("mu_product", shape="scalar"),
            State("last", shape="scalar"),
        ),
        table=("beta1", "step"),
        update=_update_novograd,
        scalars=_scalars_novograd,
        active_state=lambda: ("m", "v", "mu_product", "last"),
        initial_state=lambda **settings: {"m": 0.0, "v": 0.0, "mu_product": 1.0, "last": -1.0},
        device_states=("v", "last"),
        wide=("beta2", "one_minus_beta2", "eps", "t"),
        n_values=1,
        passes=(Pass(0, ("dot",), ("tensor",)), Pass(1)),
        stages=(1,),
        active_passes=lambda: (0, 1),
        active_stages=lambda: (1,),
    )


def _update_distance(param, grad, start, d, steps, lr, d0, growth, t, adapt, real, rounded):
    if adapt:
        along = yield over_all("dot", 0, grad, start - param)
        length = yield over_all("norm1", 1, grad)
        d = maximum(d, minimum(growth * d, divide(lr * along, length)))
        steps = steps + 1.0
        param = rounded(param - lr * d * grad)
    else:
        param = rounded(param - lr * grad)
    return param, start, d, steps


class DistanceSGD(Handwritten):
    """Gradient descent by an estimate of the distance that is still to go, for all tensors together."""

    definition = defined(
        "distance_sgd",
        "DistanceSGD",
        hyperparameters=(
            Hyperparameter("lr", default=1.0, min=0.0),
            Hyperparameter("d0", default=0.01, above=0.0),
            Hyperparameter("growth", default=2.0, min=1.0),
        ),
        options=(Option("adapt", default=True),),
        state=(State("start"), State("d", shape="shared"), State("steps", shape="shared")),
        table=("lr",),
        update=_update_distance,
        scalars=lambda *, lr, d0, growth, adapt, t: ((lr,), (lr, growth), {}),
        active_state=lambda *, adapt: ("start", "d", "steps") if adapt else ("start",),
        initial_state=lambda *, d0, **settings: {"start": "param", "d": d0, "steps": 0.0},
        wide=("lr", "growth"),
        n_values=1,
        passes=(Pass(0, ("dot", "norm1"), ("all", "all")), Pass(2)),
        stages=(1,),
        active_passes=lambda *, adapt: (0, 1) if adapt else (1,),
        active_stages=lambda *, adapt: (1,) if adapt else (),
        yields=True,
    )


ALL = (Lamb, ClippedSGD, NovoGrad, DistanceSGD)
