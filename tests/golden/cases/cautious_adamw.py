"""cautious_adamw by timm, which divides by the mean of the mask."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.peers import Values, renamed, run_torch, timm_optimizer

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6}

CASES = (
    Case("timm", {**_COMMON, "weight_decay": 0.0}, {"clamp_mean": True}),
    Case("timm_decay", {**_COMMON, "weight_decay": 0.3}, {"clamp_mean": True}),
)


def run(case: Case) -> Run:
    """The trajectory of timm."""

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(
        case,
        timm_optimizer("adamw", "AdamWLegacy"),
        rename,
        ("exp_avg", "exp_avg_sq"),
        constant={"caution": True, "foreach": False},
    )
