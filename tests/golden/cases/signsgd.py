"""signsgd and Signum by pytorch_optimizer, and by optax."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, renamed, run_optax, run_torch


def _settings(momentum: float, decay: float) -> dict[str, float]:
    return {"lr": 0.02, "momentum": momentum, "weight_decay": decay}


CASES = (
    *(
        Case(
            f"{'signum' if momentum else 'signsgd'}{'_decay' if decay else ''}{ending}",
            _settings(momentum, decay),
            options,
            by="pytorch_optimizer",
        )
        for (ending, options), momentum, decay in product(
            switched("decoupled_weight_decay", "maximize"), (0.0, 0.85), (0.0, 0.3)
        )
    ),
    Case("optax_sign_sgd", _settings(0.0, 0.0), by="optax"),
    Case("optax_signum", _settings(0.85, 0.0), by="optax"),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    if case.by == "optax":
        import optax

        def make(values: Values) -> object:
            if values["momentum"] == 0:
                return optax.sign_sgd(values["lr"])
            return optax.signum(values["lr"], beta=values["momentum"])

        return run_optax(case, make, {"momentum_buffer": "ema"} if case.hyperparameters["momentum"] else {})
    from pytorch_optimizer import SignSGD

    constant = {
        "weight_decouple": case.options["decoupled_weight_decay"],
        "maximize": case.options["maximize"],
        "foreach": False,
    }
    return run_torch(case, SignSGD, lambda values: renamed(values), ("momentum_buffer",), constant=constant)
