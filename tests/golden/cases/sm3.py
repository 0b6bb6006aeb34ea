"""sm3 by optax, which takes tensors of at least one axis. Its states are followed by hand."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, run_optax

UNRECORDED = ("exp_avg", "row_max", "col_max")

CASES = tuple(Case(f"momentum_{momentum}", {"lr": 0.2, "momentum": momentum}) for momentum in (0.0, 0.6, 0.9))


def run(case: Case) -> Run:
    """optax's trajectory."""
    import jax.numpy as jnp
    import optax

    def make(values: Values) -> Any:
        rule = optax.sm3(values["lr"], values["momentum"])

        def update(gradient: Any, state: Any, param: Any) -> Any:
            step, state = rule.update(jnp.atleast_1d(gradient), state, jnp.atleast_1d(param))
            return step.reshape(gradient.shape), state

        return optax.GradientTransformation(lambda param: rule.init(jnp.atleast_1d(param)), update)

    return run_optax(case, make, {})
