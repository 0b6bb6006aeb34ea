"""sgdp by timm, with thresholds that no step passes, some do, and all do."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import run_torch, timm_optimizer

_COMMON = {"lr": 0.03, "eps": 1e-3, "wd_ratio": 0.4}

CASES = tuple(
    Case(
        f"delta_{delta}_momentum_{momentum}{ending}",
        {**_COMMON, "delta": delta, "momentum": momentum, "dampening": 0.3, "weight_decay": 0.2},
        options,
    )
    for (ending, options), delta, momentum in product(switched("nesterov"), (0.05, 0.9, 2.5), (0.0, 0.8))
)


def run(case: Case) -> Run:
    """timm's trajectory."""
    return run_torch(case, timm_optimizer("sgdp", "SGDP"), dict, {"momentum_buffer": "momentum"})
