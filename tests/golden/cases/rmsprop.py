"""rmsprop by torch."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import run_torch

CASES = tuple(
    Case(
        f"{'momentum' if momentum else 'plain'}{'_decay' if decay else ''}{ending}",
        {"lr": 0.02, "alpha": 0.9, "eps": 1e-5, "weight_decay": decay, "momentum": momentum},
        options,
        changes={
            11: {"lr": 0.1},
            17: {"weight_decay": 2.0},
            20: {"alpha": 0.95},
            23: {"momentum": 0.9},
            27: {"eps": 3.0},
        },
    )
    for (ending, options), momentum, decay in product(
        switched("centered", "maximize"), (0.0, 0.85), (0.0, 0.07)
    )
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    return run_torch(case, torch.optim.RMSprop, dict, ("square_avg", "momentum_buffer", "grad_avg"))
