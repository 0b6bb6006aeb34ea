"""prodigy by the authors' package prodigyopt, and by optax, which corrects biases always."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-5, "d0": 0.01}
_DECAY = {**_COMMON, "weight_decay": 0.3}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}, 23: {"beta1": 0.9}}
_CORRECTED = {"use_bias_correction": True}

CASES = tuple(
    Case(name, values, options, by=name.partition("_x_")[0], changes=_CHANGES, dense=name.startswith("optax"))
    for name, values, options in (
        ("prodigyopt", _COMMON, {}),
        ("prodigyopt_x_decay", {**_DECAY, "lr": 0.7}, {}),
        ("prodigyopt_x_coupled", _DECAY, {"decoupled_weight_decay": False}),
        ("prodigyopt_x_corrected", {**_DECAY, "d_coef": 1.7}, _CORRECTED),
        ("prodigyopt_x_safeguard", {**_COMMON, "lr": 0.7, "beta3": 0.9}, {"safeguard_warmup": True}),
        ("prodigyopt_x_growth", {**_COMMON, "d0": 1e-4, "growth_rate": 1.3}, {}),
        ("optax", _COMMON, _CORRECTED),
        ("optax_x_decay", {**_DECAY, "lr": 0.7, "beta3": 0.9, "d_coef": 0.6}, _CORRECTED),
        ("optax_x_safeguard", {**_COMMON, "lr": 0.7}, {**_CORRECTED, "safeguard_warmup": True}),
    )
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    from prodigyopt import Prodigy

    def rename(values: Values) -> dict[str, Any]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    of_group: dict[str, Any] = {"d": "d", "d_numerator": "d_numerator"}
    if "growth_rate" in case.hyperparameters:
        of_group["d_max"] = "d_max"
    if case.options.get("use_bias_correction"):
        of_group["k"] = "k"
    return run_torch(
        case,
        Prodigy,
        rename,
        {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "s": _shaped("s"), "p0": _shaped("p0")},
        constant={
            "decouple": case.options.get("decoupled_weight_decay", True),
            **{name: case.options.get(name, False) for name in ("use_bias_correction", "safeguard_warmup")},
        },
        together=True,
        shared={ours: _of_the_group(theirs) for ours, theirs in of_group.items()},
    )


def _shaped(name: str) -> Any:
    """It keeps some states flat."""
    return lambda state: state[name].reshape(state["exp_avg"].shape)


def _of_the_group(name: str) -> Any:
    return lambda optimizer: optimizer.param_groups[0][name]


def _run_optax(case: Case) -> Run:
    from optax.contrib import prodigy

    def make(values: Values) -> Any:
        theirs = renamed(
            values,
            lr="learning_rate",
            beta1="betas[0]",
            beta2="betas[1]",
            d0="estim_lr0",
            d_coef="estim_lr_coef",
        )
        return prodigy(safeguard_warmup=case.options.get("safeguard_warmup", False), **theirs)

    return run_optax(
        case,
        make,
        {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "s": "grad_sum", "p0": "params0"},
        together=True,
        shared={"d": "estim_lr", "d_numerator": "numerator_weighted", "k": "count"},
    )
