"""novograd by timm, and by optax."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch, timm_optimizer

_COMMON = {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}

CASES = (
    *(
        Case(
            f"timm{'_decay' if decay else ''}{ending}",
            {**_COMMON, "weight_decay": decay},
            options,
            by="timm",
        )
        for (ending, options), decay in product(
            switched("grad_averaging", "amsgrad", "decoupled_weight_decay"), (0.0, 0.3)
        )
        if decay or not options["decoupled_weight_decay"]
    ),
    Case("optax", {**_COMMON, "weight_decay": 0.3}, by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    return run_torch(
        case,
        timm_optimizer("nvnovograd", "NvNovoGrad"),
        lambda values: renamed(values, beta1="betas[0]", beta2="betas[1]"),
        ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"),
        constant={
            "grad_averaging": case.options["grad_averaging"],
            "amsgrad": case.options["amsgrad"],
            "decoupled_decay": case.options["decoupled_weight_decay"],
        },
    )


def _run_optax(case: Case) -> Run:
    import optax

    def make(values: Values) -> Any:
        return optax.novograd(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

    return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})
