"""asgd by torch, which applies a change of lr, lambd and alpha an update late: it is told an update early."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.data import gradients
from tests.golden.peers import run_torch

_LATE = ("lr", "lambd", "alpha", "t0")
"""What enters the rate and the weight of the average, which torch works out for the update to come."""

CASES = tuple(
    Case(
        f"asgd{'_averaging' if t0 < 100 else ''}{'_decay' if decay else ''}{ending}",
        {"lr": 0.1, "lambd": lambd, "alpha": 0.6, "t0": t0, "weight_decay": decay},
        options,
        changes={11: {"lr": 0.1}, 17: {"weight_decay": 2.0}, 23: {"alpha": 1.5}},
    )
    for (ending, options), decay, (t0, lambd) in product(
        switched("maximize"), (0.0, 0.07), ((7.0, 0.3), (1000.0, 0.02))
    )
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    def at(step: int, tensor: str) -> dict[str, float]:
        # lambd also acts at once, on the parameter: it doesn't change in these cases.
        following = next(n for n in range(step + 1, step + 3) if gradients(n)[tensor] is not None)
        return {name: case.at(following if name in _LATE else step)[name] for name in case.hyperparameters}

    return run_torch(case, torch.optim.ASGD, dict, ("ax",), values_at=at)
