"""optimistic_sgd by optax."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax

CASES = (
    Case("plain", {"lr": 0.03}),
    Case(
        "generalized", {"lr": 0.03, "alpha": 0.7, "beta": 1.3}, changes={11: {"lr": 0.1}, 17: {"beta": 0.5}}
    ),
    Case("without_optimism", {"lr": 0.03, "alpha": 1.5, "beta": 0.0}),
)


def run(case: Case) -> Run:
    """The trajectory of optax."""
    import optax

    def make(values: Values) -> object:
        return optax.optimistic_gradient_descent(**renamed(values, lr="learning_rate"))

    return run_optax(case, make, {"prev_grad": "previous_gradient"})
