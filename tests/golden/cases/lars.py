"""lars by timm, whose rate stands outside the momentum, and by optax, whose ratio is ours without decay."""

from __future__ import annotations

from itertools import product
from typing import Any

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch, timm_optimizer

_COMMON = {"lr": 0.4, "trust_coefficient": 0.06}

CASES = (
    *(
        Case(
            f"timm{'_momentum' if momentum else ''}{'_decay' if decay else ''}{ending}",
            {**_COMMON, "momentum": momentum, "weight_decay": decay, "eps": 1e-4},
            {**options, "lr_in_momentum": False},
            by="timm",
        )
        for (ending, options), momentum, decay in product(
            switched("nesterov", "trust_clip"), (0.0, 0.85), (0.0, 0.3)
        )
        if momentum or not options["nesterov"]
    ),
    Case(
        "timm_without",
        {"lr": 0.02, "momentum": 0.85, "weight_decay": 0.0},
        {"adapt": False, "lr_in_momentum": False},
        by="timm",
    ),
    *(
        Case(f"optax{ending}", {**_COMMON, "momentum": 0.85, "eps": 1e-4}, options, by="optax")
        for ending, options in switched("nesterov")
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        return _run_optax(case)
    adapt = case.options.get("adapt", True)
    return run_torch(
        case,
        timm_optimizer("lars", "Lars"),
        lambda values: renamed(values, trust_coefficient="trust_coeff"),
        ("momentum_buffer",) if case.hyperparameters["momentum"] else (),
        constant={
            **{name: case.options.get(name, False) for name in ("nesterov", "trust_clip")},
            "always_adapt": adapt,
            "foreach": False,
        },
    )


def _run_optax(case: Case) -> Run:
    import optax

    def make(values: Values) -> Any:
        return optax.lars(nesterov=case.options["nesterov"], **renamed(values, lr="learning_rate"))

    # Its trace sums steps downhill: the buffer with its sign turned.
    return run_optax(case, make, {"momentum_buffer": lambda state: -optax.tree.get(state, "trace")})
