"""schedule_free_adamw by the package schedulefree, by optax, and by Keras, which weighs all alike."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, keras_module, renamed, run_keras, run_optax, run_torch

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6}
_DECAY = {**_COMMON, "weight_decay": 0.07}

CASES = (
    *(
        Case(
            f"schedulefree_{name}{'_paper' if paper else ''}",
            settings,
            {"correct_lr": paper, "average": name == "warmup"},
            by="schedulefree",
        )
        for (name, settings), paper in product(
            {
                "plain": _COMMON,
                "warmup": {**_DECAY, "warmup_steps": 9},
                "powers": {**_DECAY, "r": 1.5, "weight_lr_power": 0.7},
            }.items(),
            (False, True),
        )
    ),
    Case("optax", {**_DECAY, "weight_lr_power": 1.5}, by="optax"),
    Case("keras", {**_COMMON, "weight_lr_power": 0.0, "warmup_steps": 6}, by="keras"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    return {"schedulefree": _schedulefree, "optax": _optax, "keras": _keras}[case.by](case)


def _schedulefree(case: Case) -> Run:
    from schedulefree import AdamWScheduleFree, AdamWScheduleFreePaper

    rule = AdamWScheduleFreePaper if case.options["correct_lr"] else AdamWScheduleFree

    def make(params: Any, **settings: Any) -> Any:
        optimizer = rule(params, foreach=False, **settings)
        optimizer.train()
        return optimizer

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    states = {"z": "z", "exp_avg_sq": "exp_avg_sq"}
    found = {name: _of_the_group(name) for name in ("lr_max", "weight_sum")}
    if case.options["average"]:
        found["x"] = _x
    return run_torch(case, make, rename, states, constant={}, found=found)


def _of_the_group(name: str) -> Any:
    return lambda optimizer, tensor: optimizer.param_groups[0][name]


def _x(optimizer: Any, y: Any) -> Any:
    """What their ``eval()`` makes of the parameter, but into another tensor."""
    (group,) = optimizer.param_groups
    return y.lerp(optimizer.state[y]["z"], 1 - 1 / group["betas"][0])


def _optax(case: Case) -> Run:
    from optax.contrib import schedule_free_adamw

    def make(values: Values) -> Any:
        return schedule_free_adamw(**renamed(values, lr="learning_rate", beta1="b1", beta2="b2"))

    return run_optax(
        case, make, {"z": "z", "exp_avg_sq": "nu", "lr_max": "max_lr", "weight_sum": "weight_sum"}
    )


def _keras(case: Case) -> Run:
    keras = keras_module()

    def rename(values: Values) -> dict[str, float]:
        kept = {name: value for name, value in values.items() if name != "weight_lr_power"}
        return renamed(kept, lr="learning_rate", beta1="beta_1", beta2="beta_2", eps="epsilon")

    return run_keras(
        case,
        lambda values: keras.optimizers.ScheduleFreeAdamW(**rename(values)),
        rename,
        {"z": "momentum", "exp_avg_sq": "velocity"},
    )
