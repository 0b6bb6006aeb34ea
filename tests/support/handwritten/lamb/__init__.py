"""A rule with all that staged rules may have, as the compiler would write it.

Reductions over the tensor and over all tensors, scalar states that live beside the tensors, a shared one, a
pass and a stage that an option leaves out.
"""

from __future__ import annotations

from typing import Any

from solvergen.runtime.optimizer import Optimizer
from tests.support.handwritten.lamb.schema import DEFINITION


class Lamb(Optimizer):
    """Layerwise adaptive moments; with ``clip``, of gradients whose common norm is bounded."""

    definition = DEFINITION

    def __init__(
        self,
        params: Any,
        *,
        clip: bool = False,
        backend: str = "auto",
        nonfinite: str = "propagate",
        **hyperparameters: float,
    ) -> None:
        super().__init__(
            params,
            hyperparameters=hyperparameters,
            options={"clip": clip},
            backend=backend,
            nonfinite=nonfinite,
        )
