"""Adam as the compiler would write it."""

from __future__ import annotations

from typing import Any

from solvergen.runtime.optimizer import Optimizer
from tests.support.handwritten.adam.schema import DEFINITION


class Adam(Optimizer):
    """Adaptive moment estimation, with coupled decay."""

    definition = DEFINITION

    lr: float
    beta1: float
    beta2: float
    eps: float
    weight_decay: float

    def __init__(
        self,
        params: Any,
        *,
        lr: float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-08,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        maximize: bool = False,
        backend: str = "auto",
        nonfinite: str = "propagate",
    ) -> None:
        super().__init__(
            params,
            hyperparameters={
                "lr": lr,
                "beta1": beta1,
                "beta2": beta2,
                "eps": eps,
                "weight_decay": weight_decay,
            },
            options={"amsgrad": amsgrad, "maximize": maximize},
            backend=backend,
            nonfinite=nonfinite,
        )
