"""madgrad by the authors' package madgrad, and by optax, which takes a real cube root."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"lr": 0.02, "eps": 1e-5}

CASES = (
    *(
        Case(
            f"madgrad{'_momentum' if momentum else ''}{'_decay' if decay else ''}{ending}",
            {**_COMMON, "momentum": momentum, "weight_decay": decay},
            options,
            by="madgrad",
        )
        for (ending, options), decay, momentum in product(
            switched("decoupled_weight_decay"), (0.0, 0.07), (0.0, 0.8)
        )
    ),
    Case("madgrad_eps_0", {"lr": 0.02, "eps": 0.0, "momentum": 0.8, "weight_decay": 0.0}, by="madgrad"),
    Case("optax", {**_COMMON, "momentum": 0.8, "weight_decay": 0.07}, by="optax"),
    Case("optax_without_momentum", {**_COMMON, "momentum": 0.0, "weight_decay": 0.07}, by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    states = {"grad_sum_sq": "grad_sum_sq", "s": "s"}
    if case.hyperparameters["momentum"]:
        states["x0"] = "x0"
    if case.by == "optax":
        import jax.numpy as jnp
        import optax
        from optax.contrib import madgrad

        def make(values: Values) -> object:
            rule = madgrad(**renamed(values, lr="learning_rate"))

            def init(param: object) -> object:
                # Of an int32 count optax takes a float32 root.
                decay, state = rule.init(param)
                return decay, state._replace(count=jnp.zeros((), jnp.float64))

            return optax.GradientTransformation(init, rule.update)

        return run_optax(case, make, states)
    from madgrad import MADGRAD

    decoupled = case.options.get("decoupled_weight_decay", False)
    return run_torch(case, MADGRAD, dict, states, constant={"decouple_decay": decoupled})
