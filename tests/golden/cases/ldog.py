"""ldog by the authors' package dog-optimizer."""

from __future__ import annotations

from tests.golden.case import Case, Run
from tests.golden.cases.dog import run_dog

_COMMON = {"reps_rel": 0.05, "eps": 1e-3}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}}

CASES = (
    Case("plain", _COMMON, {"average": False}, changes=_CHANGES),
    Case("decay", {**_COMMON, "weight_decay": 0.3, "lr": 0.8}, {"average": False}, changes=_CHANGES),
    Case("average", {**_COMMON, "gamma": 5.0}, {"average": True}, changes=_CHANGES),
)


def run(case: Case) -> Run:
    """The trajectory of the package."""
    from dog import LDoG

    return run_dog(case, LDoG, together=False)
