"""came by pytorch_optimizer; its state of vectors, multiplied by the rate at every step, is mended."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

UNRECORDED = ("exp_avg_sq_row", "exp_avg_sq_col", "exp_avg_res_row", "exp_avg_res_col")

_COMMON = {"lr": 0.03, "beta1": 0.8, "beta2": 0.9, "beta3": 0.95, "eps1": 1e-6, "eps2": 1e-4}

CASES = tuple(
    Case(
        f"clip_{clip}{'_decay' if decay else ''}{ending}",
        {**_COMMON, "clip_threshold": clip, "weight_decay": decay},
        options,
    )
    for (ending, options), clip, decay in product(switched("maximize"), (0.6, 3.0), (0.0, 0.3))
)


def run(case: Case) -> Run:
    """The package's trajectory."""
    from pytorch_optimizer import CAME

    class Mended(CAME):
        def step(self, closure: Any = None) -> Any:
            loss = super().step(closure)
            for group in self.param_groups:
                for p in group["params"]:
                    if p.ndim < 2 and p.grad is not None:
                        self.state[p]["exp_avg"].div_(group["lr"])
            return loss

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]", beta3="betas[2]")

    return run_torch(case, Mended, rename, ("exp_avg",))
