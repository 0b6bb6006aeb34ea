"""adam by torch."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

CASES = tuple(
    Case(
        f"adam{'_decay' if decay else ''}{ending}",
        {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": decay},
        options,
    )
    for (ending, options), decay in product(switched("amsgrad", "maximize"), (0.0, 0.07))
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch.optim.Adam, rename, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"))
