"""fromage by pytorch_optimizer, whose code is the authors', and by optax with its smallest norm at 0."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, run_optax, run_torch

_CHANGES = {11: {"lr": 0.1}, 20: {"lr": 20.0}}

CASES = (
    Case("pytorch_optimizer", {"lr": 0.2}, by="pytorch_optimizer", changes=_CHANGES),
    Case("pytorch_optimizer_bound", {"lr": 0.5, "p_bound": 1.05}, by="pytorch_optimizer", changes=_CHANGES),
    Case("pytorch_optimizer_tight", {"lr": 0.5, "p_bound": 0.8}, by="pytorch_optimizer", changes=_CHANGES),
    Case("optax", {"lr": 0.2}, by="optax", changes=_CHANGES),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> Any:
            return optax.fromage(values["lr"], min_norm=0.0)

        return run_optax(case, make, {})
    from pytorch_optimizer import Fromage

    return run_torch(case, Fromage, dict, {"max_norm": "max"}, constant={})
