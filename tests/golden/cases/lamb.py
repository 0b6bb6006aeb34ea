"""lamb by timm, which clips all gradients together, by optax, and by torch_optimizer."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.golden.case import CHANGES, Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch, timm_optimizer

_COMMON = {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6}

CASES = (
    *(
        Case(
            f"timm{'_decay' if decay else ''}{ending}",
            {**_COMMON, "weight_decay": decay},
            options,
            by="timm",
        )
        for (ending, options), decay in product(switched("bias_correction", "trust_clip"), (0.0, 0.3))
    ),
    Case("timm_without", {**_COMMON, "weight_decay": 0.0}, {"adapt": False}, by="timm"),
    # It counts updates by the group, so that there a tensor may not be left out.
    *(
        Case(
            f"timm_clipped{'' if adapt else '_without'}",
            {**_COMMON, "weight_decay": 0.3 if adapt else 0.0, "max_grad_norm": 0.7},
            {"adapt": adapt},
            by="timm",
            dense=True,
        )
        for adapt in (True, False)
    ),
    Case(
        "torch_optimizer", {**_COMMON, "weight_decay": 0.3}, {"bias_correction": False}, by="torch_optimizer"
    ),
    Case("optax", {**_COMMON, "weight_decay": 0.3}, by="optax", changes={**CHANGES, 15: {"eps": 100.0}}),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)

    def rename(values: Values) -> dict[str, Any]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    states = ("exp_avg", "exp_avg_sq")
    if case.by == "torch_optimizer":
        from torch_optimizer import Lamb

        return run_torch(case, Lamb, rename, states, constant={})
    return run_torch(
        case,
        timm_optimizer("lamb", "Lamb"),
        lambda values: {"max_grad_norm": None, **rename(values)},
        states,
        constant={
            "bias_correction": case.options.get("bias_correction", True),
            "trust_clip": case.options.get("trust_clip", False),
            "always_adapt": case.options.get("adapt", True),
            "foreach": False,
        },
        together="max_grad_norm" in case.hyperparameters,
    )


def _run_optax(case: Case) -> Run:
    import optax

    def make(values: Values) -> Any:
        return optax.lamb(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

    return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})
