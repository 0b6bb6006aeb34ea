"""adam_mini by the authors' package, for which a tensor whose name it doesn't know is one block."""

from __future__ import annotations

from typing import Any

from tests.golden.case import Case, Run
from tests.golden.peers import run_torch

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-5}

CASES = (
    Case("plain", {**_COMMON, "weight_decay": 0.0}),
    Case("decay", {**_COMMON, "weight_decay": 0.3}),
)


def run(case: Case) -> Run:
    """The trajectory of the package."""
    from adam_mini import Adam_mini

    # It keeps both betas apart in the group, but takes them as a pair.
    def make(params: Any, beta1: float, beta2: float, **settings: float) -> Any:
        named = [("w", param) for param in params]
        return Adam_mini(named, betas=(beta1, beta2), verbose=False, **settings)

    return run_torch(case, make, dict, {"exp_avg": "m", "exp_avg_sq": "vmean"})
