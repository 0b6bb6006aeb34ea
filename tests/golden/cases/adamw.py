"""adamw by torch and by optax; by Keras with an epsilon of 0, which it adds elsewhere."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, keras_module, renamed, run_keras, run_optax, run_torch


def _settings(decay: float, eps: float = 1e-6) -> dict[str, float]:
    return {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": eps, "weight_decay": decay}


CASES = (
    *(
        Case(f"torch{'_decay' if decay else ''}{ending}", _settings(decay), options, by="torch")
        for (ending, options), decay in product(switched("amsgrad", "maximize"), (0.0, 0.3))
    ),
    Case("optax", _settings(0.3), by="optax"),
    *(
        Case(f"keras{ending}", _settings(0.3, 1e-24), options, by="keras")
        for ending, options in switched("amsgrad")
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    return {"torch": _torch, "optax": _optax, "keras": _keras}[case.by](case)


def _torch(case: Case) -> Run:
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, torch.optim.AdamW, rename, ("exp_avg", "exp_avg_sq", "max_exp_avg_sq"))


def _optax(case: Case) -> Run:
    import optax

    def make(values: Values) -> object:
        return optax.adamw(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

    return run_optax(case, make, {"exp_avg": "mu", "exp_avg_sq": "nu"})


def _keras(case: Case) -> Run:
    keras = keras_module()

    def rename(values: Values) -> dict[str, float]:
        return renamed(values, lr="learning_rate", beta1="beta_1", beta2="beta_2", eps="epsilon")

    states = {"exp_avg": "momentum", "exp_avg_sq": "velocity", "max_exp_avg_sq": "velocity_hat"}
    return run_keras(
        case,
        lambda values: keras.optimizers.AdamW(amsgrad=case.options["amsgrad"], **rename(values)),
        rename,
        states,
    )
