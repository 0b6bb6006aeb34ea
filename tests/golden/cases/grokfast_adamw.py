"""grokfast_adamw by torch's AdamW on gradients that are filtered here, and by pytorch_optimizer, with an
epsilon of 0, which it doesn't add."""

from __future__ import annotations

from typing import Any

from tests.golden.case import CHANGES, Case, Run
from tests.golden.peers import Values, renamed, run_torch

_COMMON = {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "alpha": 0.9, "lamb": 1.5}
_LATER = {**CHANGES, 14: {"lamb": 2.0}, 19: {"alpha": 0.7}}

CASES = (
    Case("torch", {**_COMMON, "eps": 1e-6, "weight_decay": 0.0}, by="torch", changes=_LATER),
    Case("torch_decay", {**_COMMON, "eps": 1e-6, "weight_decay": 0.3}, by="torch", changes=_LATER),
    Case(
        "pytorch_optimizer",
        {**_COMMON, "eps": 1e-24, "weight_decay": 0.3},
        by="pytorch_optimizer",
        changes=_LATER,
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "torch":
        return _run_torch(case)
    from pytorch_optimizer import GrokFastAdamW

    def rename(values: Values) -> dict[str, object]:
        return renamed(
            values, beta1="betas[0]", beta2="betas[1]", alpha="grokfast_alpha", lamb="grokfast_lamb"
        )

    states = {"grad_avg": "grok_exp_avg", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
    return run_torch(case, GrokFastAdamW, rename, states, constant={"normalize_lr": False})


def _run_torch(case: Case) -> Run:
    import torch

    class Filtered(torch.optim.AdamW):  # type: ignore[misc]
        """AdamW of torch, with Grokfast-EMA before it."""

        def __init__(self, params: Any, alpha: float, lamb: float, **settings: Any) -> None:
            super().__init__(params, **settings)
            self.param_groups[0].update(alpha=alpha, lamb=lamb)
            self.slow: Any = None

        def step(self) -> None:  # type: ignore[override]
            group = self.param_groups[0]
            (param,) = group["params"]
            gradient = param.grad
            if self.slow is None:
                self.slow = gradient
            self.slow = self.slow * group["alpha"] + gradient * (1 - group["alpha"])
            param.grad = gradient + self.slow * group["lamb"]
            super().step()

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, beta1="betas[0]", beta2="betas[1]")

    return run_torch(case, Filtered, rename, ("exp_avg", "exp_avg_sq"), constant={})
