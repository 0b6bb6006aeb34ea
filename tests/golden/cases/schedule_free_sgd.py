"""schedule_free_sgd by the authors' package schedulefree, and by optax."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"lr": 0.03, "momentum": 0.85}
_DECAY = {**_COMMON, "weight_decay": 0.07}

CASES = (
    Case("schedulefree", _COMMON, by="schedulefree"),
    Case("schedulefree_decay", _DECAY, by="schedulefree"),
    Case("schedulefree_warmup", {**_DECAY, "warmup_steps": 9}, by="schedulefree"),
    Case("schedulefree_powers", {**_COMMON, "r": 1.5, "weight_lr_power": 0.7}, by="schedulefree"),
    Case(
        "schedulefree_average", {**_DECAY, "warmup_steps": 40, "r": 1.0}, {"average": True}, by="schedulefree"
    ),
    Case("schedulefree_equal_weights", {**_DECAY, "weight_lr_power": 0.0}, by="schedulefree"),
    Case("optax", {**_DECAY, "weight_lr_power": 1.5}, by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    from schedulefree import SGDScheduleFree

    def make(params: Any, **settings: Any) -> Any:
        optimizer = SGDScheduleFree(params, foreach=False, **settings)
        optimizer.train()
        return optimizer

    states = {"z": "z"}
    found = {name: _of_the_group(name) for name in ("lr_max", "weight_sum")}
    if case.options.get("average"):
        found["x"] = _x
    return run_torch(case, make, dict, states, constant={}, found=found)


def _of_the_group(name: str) -> Any:
    return lambda optimizer, tensor: optimizer.param_groups[0][name]


def _x(optimizer: Any, y: Any) -> Any:
    """What their ``eval()`` makes of the parameter, but into another tensor."""
    (group,) = optimizer.param_groups
    return y.lerp(optimizer.state[y]["z"], 1 - 1 / group["momentum"])


def _run_optax(case: Case) -> Run:
    from optax.contrib import schedule_free_sgd

    def make(values: Values) -> Any:
        return schedule_free_sgd(**renamed(values, lr="learning_rate", momentum="b1"))

    return run_optax(case, make, {"z": "z", "lr_max": "max_lr", "weight_sum": "weight_sum"})
