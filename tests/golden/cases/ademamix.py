"""ademamix by optax, where warmups are schedules, and by pytorch_optimizer, which has one for both."""

from __future__ import annotations

import math

from tests.golden.case import CHANGES, Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "beta3": 0.98, "alpha": 3.0, "eps": 1e-6}
_LATER = {**CHANGES, 25: {"alpha": 0.5, "beta3": 0.99}}

CASES = (
    Case("optax", {**_COMMON, "weight_decay": 0.0}, by="optax", changes=_LATER),
    Case("optax_decay", {**_COMMON, "weight_decay": 0.07}, by="optax", changes=_LATER),
    Case("optax_without_fast", {**_COMMON, "beta1": 0.0, "weight_decay": 0.07}, by="optax"),
    Case(
        "optax_warmups",
        {**_COMMON, "alpha_warmup": 9, "beta3_warmup": 21, "weight_decay": 0.07},
        by="optax",
        changes=_LATER,
    ),
    Case(
        "pytorch_optimizer_warmup",
        {**_COMMON, "alpha_warmup": 20, "beta3_warmup": 20, "weight_decay": 0.07},
        by="pytorch_optimizer",
    ),
    Case(
        "pytorch_optimizer_long_warmup",
        {**_COMMON, "alpha_warmup": 100, "beta3_warmup": 100, "weight_decay": 0.0},
        by="pytorch_optimizer",
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    from pytorch_optimizer import AdEMAMix

    def rename(values: Values) -> dict[str, object]:
        assert values["alpha_warmup"] == values["beta3_warmup"]
        names = {f"beta{i + 1}": f"betas[{i}]" for i in range(3)}
        return renamed(values, alpha_warmup="t_alpha_beta3", beta3_warmup="", **names)

    states = {"exp_avg_fast": "exp_avg", "exp_avg_slow": "exp_avg_slow", "exp_avg_sq": "exp_avg_sq"}
    return run_torch(case, AdEMAMix, rename, states, constant={"weight_decouple": True})


def _run_optax(case: Case) -> Run:
    import jax.numpy as jnp
    from optax.contrib import ademamix

    def share(count: object, steps: float) -> jnp.ndarray:
        done = jnp.asarray(count, jnp.float64) + 1  # an int32 would make a float32
        return jnp.minimum(done / steps, 1.0)

    def make(values: Values) -> object:
        theirs = renamed(
            values, lr="learning_rate", beta1="b1", beta2="b2", beta3="b3", alpha_warmup="", beta3_warmup=""
        )
        steps = values.get("alpha_warmup", 0)
        if steps:
            theirs["alpha"] = lambda count: values["alpha"] * share(count, steps)
        longer = values.get("beta3_warmup", 0)
        if longer:
            # Linear in the half-life log(0.5)/log(beta), from that of beta1 to that of beta3.
            first, last = (math.log(0.5) / math.log(values[name]) for name in ("beta1", "beta3"))

            def b3(count: object) -> object:
                return 0.5 ** (1 / (first + share(count, longer) * (last - first)))

            theirs["b3"] = b3
        return ademamix(**theirs)

    states = {"exp_avg_slow": "m2", "exp_avg_sq": "nu"}
    if case.hyperparameters["beta1"]:
        states["exp_avg_fast"] = "m1"
    return run_optax(case, make, states)
