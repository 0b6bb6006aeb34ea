"""ftrl by Keras, whose strengths of L2 terms are half of ours."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_keras

_PLAIN = {"lr": 0.3, "beta": 0.0, "l1": 0.0, "l2": 0.0, "l2_shrinkage": 0.0, "initial_accumulator": 0.05}
_ALL = {**_PLAIN, "beta": 0.4, "l1": 0.02, "l2": 0.3, "l2_shrinkage": 0.1}
_CHANGES = {11: {"lr": 0.1}, 17: {"l1": 2.0, "l2": 0.5, "l2_shrinkage": 2.0}, 23: {"beta": 1.5}}

CASES = (
    Case("plain", _PLAIN, changes=_CHANGES),
    Case("l1", {**_PLAIN, "l1": 0.02}, changes=_CHANGES),
    Case("all", _ALL, changes=_CHANGES),
    Case("all_from_0", {**_ALL, "initial_accumulator": 0.0}, changes=_CHANGES),
    Case("power", {**_ALL, "lr_power": -0.7}, changes={**_CHANGES, 20: {"lr_power": 1.1}}),
    Case("constant_rate", {**_ALL, "lr_power": 0.0}, changes=_CHANGES),
    Case("general_power_of_a_half", {**_ALL, "lr_power": -0.5}, {"square_root": False}, changes=_CHANGES),
)


def run(case: Case) -> Run:
    """Keras's trajectory."""
    import os

    os.environ.setdefault("KERAS_BACKEND", "jax")
    import keras

    def rename(values: Values) -> dict[str, float]:
        halved = {n: v / 2 if n in ("l2", "l2_shrinkage") else v for n, v in values.items()}
        return renamed(
            halved,
            lr="learning_rate",
            lr_power="learning_rate_power",
            initial_accumulator="initial_accumulator_value",
            l1="l1_regularization_strength",
            l2="l2_regularization_strength",
            l2_shrinkage="l2_shrinkage_regularization_strength",
        )

    def make(values: Values) -> object:
        return keras.optimizers.Ftrl(**rename(values))

    return run_keras(case, make, rename, {"accumulator": "accumulator", "linear": "linear"})
