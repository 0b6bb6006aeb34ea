"""qhadam by torch_optimizer. (pytorch_optimizer's has 1 - beta * square for (1 - beta) * square.)"""

from __future__ import annotations

from itertools import product

from tests.golden.case import CHANGES, Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-6}
_LATER = {**CHANGES, 25: {"nu1": 0.9, "nu2": 0.8, "beta2": 0.9}}

CASES = (
    *(
        Case(
            f"mixed{'_decay' if decay else ''}{ending}",
            {**_COMMON, "nu1": 0.7, "nu2": 0.9, "weight_decay": decay},
            options,
            changes=_LATER,
        )
        for (ending, options), decay in product(switched("decoupled_weight_decay"), (0.0, 0.07))
    ),
    Case("adam", {**_COMMON, "nu1": 1.0, "nu2": 1.0, "weight_decay": 0.07}),
    Case("other_side", {**_COMMON, "nu1": 1.2, "nu2": 0.0, "weight_decay": 0.07}),
)


def run(case: Case) -> Run:
    """The trajectory of torch_optimizer."""
    import torch_optimizer

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]", nu1="nus[0]", nu2="nus[1]")

    constant = {"decouple_weight_decay": case.options.get("decoupled_weight_decay", False)}
    states = ("exp_avg", "exp_avg_sq", "beta1_weight", "beta2_weight")
    return run_torch(case, torch_optimizer.QHAdam, rename, states, constant=constant)
