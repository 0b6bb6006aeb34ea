"""nadam by torch, and by Keras, whose momentum decay is 1."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, keras_module, renamed, run_keras, run_torch


def _settings(decay: float, momentum_decay: float) -> dict[str, float]:
    return {
        "lr": 0.02,
        "beta1": 0.8,
        "beta2": 0.95,
        "eps": 1e-6,
        "weight_decay": decay,
        "momentum_decay": momentum_decay,
    }


CASES = (
    *(
        Case(
            f"torch{'_decay' if decay else ''}{ending}",
            _settings(decay, 0.2),
            options,
            by="torch",
            changes={
                11: {"lr": 0.1},
                17: {"weight_decay": 2.0},
                20: {"momentum_decay": 0.5},
                23: {"beta1": 0.9},
            },
        )
        for (ending, options), decay in product(switched("decoupled_weight_decay", "maximize"), (0.0, 0.07))
    ),
    Case("keras", _settings(0.07, 1.0), {"decoupled_weight_decay": True}, by="keras"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "keras":
        keras = keras_module()

        def keras_names(values: Values) -> dict[str, float]:
            kept = {name: value for name, value in values.items() if name != "momentum_decay"}
            return renamed(kept, lr="learning_rate", beta1="beta_1", beta2="beta_2", eps="epsilon")

        return run_keras(
            case,
            lambda values: keras.optimizers.Nadam(**keras_names(values)),
            keras_names,
            {"exp_avg": "momentum", "exp_avg_sq": "velocity"},
        )
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch.optim.NAdam, rename, ("exp_avg", "exp_avg_sq", "mu_product"))
