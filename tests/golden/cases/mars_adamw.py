"""mars_adamw by timm, told to treat all tensors alike."""

from __future__ import annotations

from tests.golden.case import CHANGES, Case, Run
from tests.golden.peers import Values, renamed, run_torch, timm_optimizer

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "gamma": 0.3}
_LATER = {**CHANGES, 14: {"gamma": 2.0}}

CASES = (
    Case("plain", {**_COMMON, "weight_decay": 0.0}, changes=_LATER),
    Case("decay", {**_COMMON, "weight_decay": 0.3}, changes=_LATER),
)


def run(case: Case) -> Run:
    """The trajectory of timm."""

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(
        case,
        timm_optimizer("mars", "Mars"),
        rename,
        ("exp_avg", "exp_avg_sq", "last_grad"),
        constant={"mars_type": "adamw", "optimize_1d": True},
    )
