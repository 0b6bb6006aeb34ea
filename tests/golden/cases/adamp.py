"""adamp by timm, with thresholds that no step passes, some do, and all do."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch, timm_optimizer

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "wd_ratio": 0.4}

CASES = tuple(
    Case(
        f"delta_{delta}{'_decay' if decay else ''}{ending}",
        {**_COMMON, "delta": delta, "weight_decay": decay},
        options,
    )
    for (ending, options), delta, decay in product(switched("nesterov"), (0.05, 0.9, 2.5), (0.0, 0.3))
)


def run(case: Case) -> Run:
    """timm's trajectory."""

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, timm_optimizer("adamp", "AdamP"), rename, ("exp_avg", "exp_avg_sq"))
