"""radam by torch, and by optax with no epsilon and another threshold."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch


def _settings(
    decay: float, *, beta2: float = 0.95, eps: float = 1e-5, threshold: float = 5.0
) -> dict[str, float]:
    return {
        "lr": 0.02,
        "beta1": 0.8,
        "beta2": beta2,
        "eps": eps,
        "weight_decay": decay,
        "threshold": threshold,
    }


CASES = (
    *(
        Case(f"torch{'_decay' if decay else ''}{ending}", _settings(decay), options, by="torch")
        for (ending, options), decay in product(switched("decoupled_weight_decay", "maximize"), (0.0, 0.07))
    ),
    Case("never_rectified", _settings(0.0, beta2=0.6), by="torch"),
    *(
        Case(f"optax_from_{threshold:g}", _settings(0.0, eps=1e-24, threshold=threshold), by="optax")
        for threshold in (4.0, 5.0, 8.5)
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            kept = {name: value for name, value in values.items() if name != "weight_decay"}
            return optax.radam(**renamed(kept, lr="learning_rate", beta1="b1", beta2="b2"))

        return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})
    import torch

    def rename(values: Values) -> dict[str, object]:
        kept = {name: value for name, value in values.items() if name != "threshold"}
        return renamed(kept, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch.optim.RAdam, rename, ("exp_avg", "exp_avg_sq"))
