"""lookahead by pytorch_optimizer."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, run_torch

CASES = (
    Case("little_momentum", {"lr": 0.03, "momentum": 0.1, "k": 5, "alpha": 0.5}),
    Case("momentum", {"lr": 0.03, "momentum": 0.85, "k": 4, "alpha": 0.7}),
    Case("decay", {"lr": 0.03, "momentum": 0.85, "weight_decay": 0.07, "k": 3, "alpha": 0.2}),
    Case("every_step", {"lr": 0.03, "momentum": 0.85, "k": 1, "alpha": 0.5}),
    Case("most_of_the_way", {"lr": 0.03, "momentum": 0.85, "k": 5, "alpha": 0.95}),
)


def run(case: Case) -> Run:
    """Its trajectory, around torch's SGD."""
    import pytorch_optimizer
    import torch

    def rename(values: Values) -> dict[str, float]:
        return {name: value for name, value in values.items() if name not in ("k", "alpha")}

    def make(params: Any, **settings: Any) -> Any:
        fast = torch.optim.SGD(params, **settings)
        return pytorch_optimizer.Lookahead(
            fast, k=int(case.hyperparameters["k"]), alpha=case.hyperparameters["alpha"]
        )

    def momentum(optimizer: Any, tensor: Any) -> Any:
        return optimizer.optimizer.state[tensor]["momentum_buffer"]

    found = {"momentum_buffer": momentum}
    return run_torch(case, make, rename, {"slow": "slow_params"}, constant={}, found=found)
