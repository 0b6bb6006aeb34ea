"""adagrad by torch, and by optax where its epsilon is 0."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch

_BEGINNINGS = {"": {}, "_from": {"initial_accumulator_value": 0.3}, "_fading": {"lr_decay": 0.2}}
_ONE = {
    "lr": 0.05,
    "lr_decay": 0.0,
    "eps": 1e-4,
    "weight_decay": 0.0,
    "initial_accumulator_value": 0.0,
}

CASES = (
    *(
        Case(
            f"adagrad{name}{'_decay' if decay else ''}{ending}",
            {**_ONE, **beginning, "weight_decay": decay},
            options,
            by="torch",
            changes={11: {"lr": 0.1}, 17: {"weight_decay": 2.0}, 23: {"lr_decay": 0.5}, 27: {"eps": 3.0}},
        )
        for (name, beginning), (ending, options), decay in product(
            _BEGINNINGS.items(), switched("maximize"), (0.0, 0.07)
        )
    ),
    # optax has its epsilon under the root: without one the rules are the same.
    Case(
        "optax",
        {"lr": 0.05, "lr_decay": 0.0, "eps": 0.0, "weight_decay": 0.0, "initial_accumulator_value": 0.1},
        by="optax",
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            kept = {k: v for k, v in values.items() if k not in ("lr_decay", "weight_decay")}
            return optax.adagrad(**renamed(kept, lr="learning_rate"))

        return run_optax(case, make, {"state_sum": "sum_of_squares"})
    import torch

    return run_torch(case, torch.optim.Adagrad, dict, {"state_sum": "sum"})
