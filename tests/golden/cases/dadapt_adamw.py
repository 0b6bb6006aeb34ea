"""dadapt_adamw by the authors' package dadaptation, and by optax, which corrects biases always."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_optax, run_torch

_COMMON = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "d0": 0.01}
_DECAY = {**_COMMON, "weight_decay": 0.3}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}, 23: {"beta1": 0.9}}
_CORRECTED = {"use_bias_correction": True}

CASES = tuple(
    Case(name, values, options, by=name.partition("_x_")[0], changes=_CHANGES, dense=name.startswith("optax"))
    for name, values, options in (
        ("dadaptation", _COMMON, {}),
        ("dadaptation_x_decay", {**_DECAY, "lr": 0.7}, {}),
        ("dadaptation_x_coupled", _DECAY, {"decoupled_weight_decay": False}),
        ("dadaptation_x_corrected", _DECAY, _CORRECTED),
        ("dadaptation_x_growth", {**_COMMON, "d0": 1e-4, "growth_rate": 1.3}, {}),
        ("optax", _COMMON, _CORRECTED),
        ("optax_x_decay", {**_DECAY, "lr": 0.7}, _CORRECTED),
    )
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    from dadaptation import DAdaptAdam

    def rename(values: Values) -> dict[str, Any]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    of_group = ["d", "numerator_weighted", *(["k"] if case.options.get("use_bias_correction") else [])]
    return run_torch(
        case,
        DAdaptAdam,
        rename,
        ("exp_avg", "exp_avg_sq", "s"),
        constant={
            "decouple": case.options.get("decoupled_weight_decay", True),
            "use_bias_correction": case.options.get("use_bias_correction", False),
        },
        together=True,
        shared={name: _of_the_group(name) for name in of_group},
    )


def _of_the_group(name: str) -> Any:
    return lambda optimizer: optimizer.param_groups[0][name]


def _run_optax(case: Case) -> Run:
    from optax.contrib import dadapt_adamw

    def make(values: Values) -> Any:
        return dadapt_adamw(
            **renamed(values, lr="learning_rate", beta1="betas[0]", beta2="betas[1]", d0="estim_lr0")
        )

    return run_optax(
        case,
        make,
        {"exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq", "s": "grad_sum"},
        together=True,
        shared={"d": "estim_lr", "numerator_weighted": "numerator_weighted", "k": "count"},
    )
