"""stable_adamw by pytorch_optimizer, and by optimi."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-5}

CASES = (
    *(
        Case(
            f"pytorch_optimizer{'_decay' if decay else ''}{ending}",
            {**_COMMON, "weight_decay": decay},
            options,
            by="pytorch_optimizer",
        )
        for (ending, options), decay in product(switched("maximize"), (0.0, 0.3))
    ),
    Case("optimi", {**_COMMON, "weight_decay": 0.3}, by="optimi"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    states = ("exp_avg", "exp_avg_sq")
    if case.by == "optimi":
        from optimi import StableAdamW as Theirs

        # It keeps both betas apart in the group, but takes them as a pair.
        def make(params: object, beta1: float, beta2: float, **settings: float) -> object:
            return Theirs(params, betas=(beta1, beta2), foreach=False, triton=False, **settings)

        return run_torch(case, make, dict, states, constant={})
    from pytorch_optimizer import StableAdamW

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, StableAdamW, rename, states)
