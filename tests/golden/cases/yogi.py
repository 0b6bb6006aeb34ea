"""yogi by torch_optimizer and by optax; the paper's rule, without bias_correction, is by hand only."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.93, "eps": 1e-4, "initial_accumulator": 1e-3}

CASES = (
    Case("torch_optimizer", {**_COMMON, "weight_decay": 0.0}, by="torch_optimizer"),
    Case("torch_optimizer_decay", {**_COMMON, "weight_decay": 0.07}, by="torch_optimizer"),
    Case("optax", _COMMON, by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            names = {"beta1": "b1", "beta2": "b2", "initial_accumulator": "initial_accumulator_value"}
            scale = optax.scale_by_yogi(**renamed(values, lr="", **names))
            return optax.chain(scale, optax.scale_by_learning_rate(values["lr"]))

        return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})
    import torch_optimizer

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch_optimizer.Yogi, rename, ("exp_avg", "exp_avg_sq"))
