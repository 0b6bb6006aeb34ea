"""aggmo by pytorch_optimizer, which keeps velocities by their decays, so that those can't change."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

_CHANGES = {11: {"lr": 0.1}, 17: {"weight_decay": 2.0}}
_BETAS = {"beta1": 0.0, "beta2": 0.8, "beta3": 0.97, "beta4": 0.995}

CASES = tuple(
    Case(
        f"{2 + three + four}{'' if beta1 == 0 else '_damped'}{'_decay' if decay else ''}{ending}",
        {"lr": 0.03, **_BETAS, "beta1": beta1, "weight_decay": decay},
        {"use_beta3": three, "use_beta4": four, **options},
        changes=_CHANGES,
    )
    for (three, four), beta1, decay, (ending, options) in product(
        ((False, False), (True, False), (True, True)), (0.0, 0.3), (0.0, 0.07), switched("maximize")
    )
)


def run(case: Case) -> Run:
    """The trajectory of pytorch_optimizer."""
    from pytorch_optimizer import AggMo

    count = 2 + case.options["use_beta3"] + case.options["use_beta4"]

    def rename(values: Values) -> dict[str, object]:
        names = {f"beta{i}": f"betas[{i - 1}]" if i <= count else "" for i in range(1, 5)}
        return renamed(values, **names)

    def velocity(beta: float) -> Any:
        def of(state: Mapping[str, Any]) -> Any:
            return state["momentum_buffer"][beta]

        return of

    betas = [case.hyperparameters[f"beta{i + 1}"] for i in range(count)]
    states = {f"momentum_buffer{i + 1}": velocity(beta) for i, beta in enumerate(betas) if beta}
    return run_torch(case, AggMo, rename, states, constant={"maximize": case.options["maximize"]})
