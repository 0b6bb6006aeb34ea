"""rmsprop_tf by timm, whose mean square begins at 1, by Keras, where it begins at 0, and by optax."""

from __future__ import annotations

from itertools import product

from tests.golden.case import Case, Run, switched
from tests.golden.peers import Values, keras_module, renamed, run_keras, run_optax, run_torch, timm_optimizer

_CHANGES = {
    11: {"lr": 0.1},
    17: {"weight_decay": 2.0},
    23: {"momentum": 0.9},
    27: {"eps": 3.0},
}
_DECAYS = {"": (0.0, False), "_decay": (0.07, False), "_decoupled": (0.07, True)}


def _settings(momentum: float, decay: float, beginning: float) -> dict[str, float]:
    return {
        "lr": 0.02,
        "alpha": 0.8,
        "eps": 1e-5,
        "weight_decay": decay,
        "momentum": momentum,
        "initial_square_avg": beginning,
    }


CASES = (
    *(
        Case(
            f"timm_{'momentum' if momentum else 'plain'}{name}{ending}",
            _settings(momentum, decay, 1.0),
            {**options, "decoupled_weight_decay": decoupled},
            by="timm",
            changes=_CHANGES,
        )
        for (ending, options), momentum, (name, (decay, decoupled)) in product(
            switched("centered", "lr_in_momentum"), (0.0, 0.85), _DECAYS.items()
        )
        if momentum or options["lr_in_momentum"]  # without momentum it makes no difference
    ),
    *(
        Case(
            f"keras_{'momentum' if momentum else 'plain'}{ending}",
            _settings(momentum, 0.07, 0.0),
            {**options, "lr_in_momentum": True, "decoupled_weight_decay": True},
            by="keras",
            changes=_CHANGES,
        )
        for (ending, options), momentum in product(switched("centered"), (0.0, 0.85))
    ),
    *(
        Case(
            f"optax{ending}",
            _settings(0.85, 0.0, 0.4),
            {**options, "lr_in_momentum": True},
            by="optax",
            changes=_CHANGES,
        )
        for ending, options in switched("centered")
    ),
)


def run(case: Case) -> Run:
    """The trajectory of the package that the case names."""
    return {"timm": _timm, "keras": _keras, "optax": _optax}[case.by](case)


def _without(values: Values, *names: str) -> dict[str, float]:
    return {name: value for name, value in values.items() if name not in names}


def _timm(case: Case) -> Run:
    return run_torch(
        case,
        timm_optimizer("rmsprop_tf", "RMSpropTF"),
        lambda values: _without(values, "initial_square_avg"),
        ("square_avg", "momentum_buffer", "grad_avg"),
        constant={
            "centered": case.options["centered"],
            "lr_in_momentum": case.options["lr_in_momentum"],
            "decoupled_decay": case.options["decoupled_weight_decay"],
            "foreach": False,
        },
    )


def _keras(case: Case) -> Run:
    keras = keras_module()

    def rename(values: Values) -> dict[str, float]:
        return renamed(_without(values, "initial_square_avg"), lr="learning_rate", alpha="rho", eps="epsilon")

    return run_keras(
        case,
        lambda values: keras.optimizers.RMSprop(centered=case.options["centered"], **rename(values)),
        rename,
        {"square_avg": "velocity", "momentum_buffer": "momentum", "grad_avg": "average_gradient"},
    )


def _optax(case: Case) -> Run:
    import optax

    def make(values: Values) -> object:
        kept = _without(values, "weight_decay")
        names = renamed(kept, lr="learning_rate", alpha="decay", initial_square_avg="initial_scale")
        return optax.rmsprop(centered=case.options["centered"], **names)

    # Its trace sums steps downhill: the buffer with its sign turned.
    states = {"square_avg": "nu", "momentum_buffer": lambda state: -optax.tree.get(state, "trace")}
    return run_optax(case, make, {**states, **({"grad_avg": "mu"} if case.options["centered"] else {})})
