"""lion by optax."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax

CASES = tuple(
    Case(
        f"lion{'_decay' if decay else ''}",
        {"lr": 0.01, "beta1": 0.85, "beta2": 0.96, "weight_decay": decay},
    )
    for decay in (0.0, 0.07)
)


def run(case: Case) -> Run:
    """Optax's trajectory."""
    import optax

    def make(values: Values) -> object:
        return optax.lion(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

    return run_optax(case, make, {"exp_avg": "mu"})
