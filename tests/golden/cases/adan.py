"""adan by timm.

optax 0.2.8 has another rule: it weighs differences by 1 - b2, as the paper's letters have it, but its b2 is
the paper's 1 - beta2 (google-deepmind/optax pull request 1715).
"""

from __future__ import annotations

from itertools import product

from tests.golden.case import CHANGES, Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch, timm_optimizer

_COMMON = {"lr": 0.02, "beta1": 0.9, "beta2": 0.8, "beta3": 0.93, "eps": 1e-6}
_LATER = {**CHANGES, 25: {"beta2": 0.9, "beta3": 0.95}}

CASES = tuple(
    Case(
        f"timm{'_decay' if decay else ''}{ending}",
        {**_COMMON, "weight_decay": decay},
        options,
        changes=_LATER,
    )
    for (ending, options), decay in product(switched("no_prox"), (0.0, 0.07))
)


def run(case: Case) -> Run:
    """timm's trajectory."""

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]", beta3="betas[2]")

    constant = {"no_prox": case.options["no_prox"], "foreach": False}
    states = ("exp_avg", "exp_avg_sq", "exp_avg_diff", "neg_pre_grad")
    return run_torch(case, timm_optimizer("adan", "Adan"), rename, states, constant=constant)
