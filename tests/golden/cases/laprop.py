"""laprop by timm; amsgrad, which timm hasn't, is by hand only."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_torch, timm_optimizer

CASES = tuple(
    Case(
        f"timm{'_decay' if decay else ''}",
        {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-6, "weight_decay": decay},
    )
    for decay in (0.0, 0.07)
)
UNRECORDED = ("max_exp_avg_sq",)


def run(case: Case) -> Run:
    """timm's trajectory."""

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    states = ("exp_avg", "exp_avg_sq", "exp_avg_lr_1", "exp_avg_lr_2")
    return run_torch(case, timm_optimizer("laprop", "LaProp"), rename, states, constant={"foreach": False})
