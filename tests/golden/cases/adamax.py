"""adamax by torch and by optax."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch

CASES = (
    *(
        Case(
            f"torch{'_decay' if decay else ''}{ending}",
            {"lr": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "weight_decay": decay},
            options,
            by="torch",
        )
        for (ending, options), decay in product(switched("maximize"), (0.0, 0.07))
    ),
    Case(
        "optax",
        {"lr": 0.02, "beta1": 0.8, "beta2": 0.9, "eps": 1e-4, "weight_decay": 0.0},
        by="optax",
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            kept = {name: value for name, value in values.items() if name != "weight_decay"}
            return optax.adamax(**renamed(kept, lr="learning_rate", beta1="b1", beta2="b2"))

        return run_optax(case, make, {"exp_avg": "mu", "exp_inf": "nu"})
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch.optim.Adamax, rename, ("exp_avg", "exp_inf"))
