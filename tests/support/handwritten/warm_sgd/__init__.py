"""WarmSGD as the compiler would write it."""

from __future__ import annotations

from typing import Any

from solvergen.runtime.optimizer import Optimizer
from tests.support.handwritten.warm_sgd.schema import DEFINITION


class WarmSGD(Optimizer):
    """Gradient descent whose momentum warms up."""

    definition = DEFINITION

    lr: float
    momentum: float
    weight_decay: float
    pull: float
    warmup: int

    def __init__(
        self,
        params: Any,
        *,
        lr: float = 0.1,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        pull: float = 0.0,
        warmup: int = 4,
        momentum_buffer: bool | None = None,
        nesterov: bool = False,
        backend: str = "auto",
        nonfinite: str = "propagate",
    ) -> None:
        super().__init__(
            params,
            hyperparameters={
                "lr": lr,
                "momentum": momentum,
                "weight_decay": weight_decay,
                "pull": pull,
                "warmup": warmup,
            },
            options={"momentum_buffer": momentum_buffer, "nesterov": nesterov},
            backend=backend,
            nonfinite=nonfinite,
        )
