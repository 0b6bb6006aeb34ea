"""adadelta by torch and by optax."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch

_CHANGES = {11: {"lr": 0.1}, 17: {"weight_decay": 2.0}, 23: {"rho": 0.9}, 27: {"eps": 3.0}}

CASES = tuple(
    Case(
        f"{by}{'_decay' if decay else ''}{ending}",
        {"lr": 0.7, "rho": 0.8, "eps": 1e-5, "weight_decay": decay},
        options,
        by=by,
        changes=_CHANGES,
    )
    for (ending, options), decay, by in product(switched("maximize"), (0.0, 0.07), ("torch", "optax"))
    if by == "torch" or not options["maximize"]
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            return optax.adadelta(**renamed(values, lr="learning_rate"))

        return run_optax(case, make, {"square_avg": "e_g", "acc_delta": "e_x"})
    import torch

    return run_torch(case, torch.optim.Adadelta, dict, ("square_avg", "acc_delta"))
