"""adopt by timm, and by optax, which has nesterov and no decay."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch, timm_optimizer

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-3, "clip_exp": 0.3}

CASES = (
    *(
        Case(
            f"timm{'_decay' if decay else ''}{ending}", {**_COMMON, "weight_decay": decay}, options, by="timm"
        )
        for (ending, options), decay in product(
            switched("clip_gradient", "decoupled_weight_decay", "maximize"), (0.0, 0.07)
        )
    ),
    *(
        Case(f"optax{ending}", _COMMON, options, by="optax")
        for ending, options in switched("clip_gradient", "nesterov")
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    clip = case.options["clip_gradient"]
    if case.by == "optax":
        from optax.contrib import adopt

        def make(values: Values) -> object:
            exponent = values["clip_exp"]
            names = {"lr": "learning_rate", "beta1": "b1", "beta2": "b2", "clip_exp": ""}
            return adopt(
                **renamed(values, **names),
                nesterov=case.options["nesterov"],
                use_clipping=clip,
                clip_value_fn=lambda count: count**exponent,
            )

        return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})

    def rename(values: Values) -> dict[str, object]:
        theirs = renamed(values, beta1="betas[0]", beta2="betas[1]")
        return theirs if clip else {**theirs, "clip_exp": None}

    constant = {
        "decoupled": case.options["decoupled_weight_decay"],
        "maximize": case.options["maximize"],
        "foreach": False,
    }
    return run_torch(
        case, timm_optimizer("adopt", "Adopt"), rename, ("exp_avg", "exp_avg_sq"), constant=constant
    )
