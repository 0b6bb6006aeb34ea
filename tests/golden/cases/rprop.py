"""rprop by torch (optax moves each element by the step of the update before, which is another rule)."""

from __future__ import annotations

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

_CHANGES = {
    11: {"lr": 0.1},  # has no effect, neither there nor here
    17: {"eta_plus": 1.1, "max_step_size": 0.8},
    23: {"eta_minus": 0.9, "min_step_size": 2.0},
}
_SETTINGS = {"lr": 0.03, "eta_minus": 0.4, "eta_plus": 1.4, "min_step_size": 1e-3, "max_step_size": 0.06}

CASES = tuple(
    Case(f"rprop{ending}", _SETTINGS, options, changes=_CHANGES) for ending, options in switched("maximize")
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(
            values,
            eta_minus="etas[0]",
            eta_plus="etas[1]",
            min_step_size="step_sizes[0]",
            max_step_size="step_sizes[1]",
        )

    return run_torch(case, torch.optim.Rprop, rename, ("prev", "step_size"))
