"""adabelief by timm, whose one epsilon is two of ours, and by optax, which has two."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch, timm_optimizer

_TIMM = {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-5, "eps_root": 1e-5}

CASES = (
    *(
        Case(f"timm{'_decay' if decay else ''}{ending}", {**_TIMM, "weight_decay": decay}, options, by="timm")
        for (ending, options), decay in product(
            switched("amsgrad", "rectify", "decoupled_weight_decay"), (0.0, 0.07)
        )
        if not (options["amsgrad"] and options["rectify"])
    ),
    Case("optax", {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-7, "eps_root": 1e-10}, by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            return optax.adabelief(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

        return run_optax(case, make, {"exp_avg": "mu", "exp_avg_var": "nu"})

    def rename(values: Values) -> dict[str, object]:
        assert values["eps"] == values["eps_root"]
        return renamed(values, beta1="betas[0]", beta2="betas[1]", eps_root="")

    constant = {
        "amsgrad": case.options["amsgrad"],
        "rectify": case.options["rectify"],
        "decoupled_decay": case.options["decoupled_weight_decay"],
        "foreach": False,
    }
    states = ("exp_avg", "exp_avg_var", "max_exp_avg_var")
    return run_torch(case, timm_optimizer("adabelief", "AdaBelief"), rename, states, constant=constant)
