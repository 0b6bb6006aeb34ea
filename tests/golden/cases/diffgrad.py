"""diffgrad by torch_optimizer. (pytorch_optimizer's computes the friction and steps without it.)"""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_torch

CASES = tuple(
    Case(
        f"diffgrad{'_decay' if decay else ''}",
        {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-6, "weight_decay": decay},
    )
    for decay in (0.0, 0.07)
)


def run(case: Case) -> Run:
    """The trajectory of torch_optimizer."""
    import torch_optimizer

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    states = ("exp_avg", "exp_avg_sq", "previous_grad")
    return run_torch(case, torch_optimizer.DiffGrad, rename, states)
