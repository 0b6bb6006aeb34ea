"""sgd by torch."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run
from tests.golden.peers import run_torch

_MOMENTA = {
    "plain": (0.0, 0.0, False),
    "dampening_alone": (0.0, 0.3, False),
    "momentum": (0.85, 0.0, False),
    "dampened": (0.85, 0.3, False),
    "nesterov": (0.85, 0.0, True),
}
"""momentum, dampening, nesterov"""

CASES = tuple(
    Case(
        f"{name}{'_decay' if decay else ''}{'_maximize' if maximize else ''}",
        {
            "lr": 0.03,
            "momentum": _MOMENTA[name][0],
            "dampening": _MOMENTA[name][1],
            "weight_decay": decay,
        },
        {"nesterov": _MOMENTA[name][2], "maximize": maximize},
    )
    for name, decay, maximize in product(_MOMENTA, (0.0, 0.07), (False, True))
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    return run_torch(case, torch.optim.SGD, dict, ("momentum_buffer",))
