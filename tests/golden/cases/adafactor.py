"""adafactor by torch, whose epsilons are a pair. Moments of rows and columns are followed by hand."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_torch

UNRECORDED = ("row_var", "col_var")

_COMMON = {"lr": 0.05, "beta2_decay": -0.7, "eps1": 1e-4, "eps2": 0.02}

CASES = tuple(
    Case(f"d_{d}{'_decay' if decay else ''}{ending}", {**_COMMON, "d": d, "weight_decay": decay}, options)
    for (ending, options), d, decay in product(switched("maximize"), (1.0, 1.6), (0.0, 0.3))
)


def run(case: Case) -> Run:
    """Torch's trajectory."""
    import torch

    def rename(values: Values) -> dict[str, object]:
        return renamed(values, eps1="eps[0]", eps2="eps[1]")

    return run_torch(case, torch.optim.Adafactor, rename, ())
