"""What Caffe does rightly, but not as most of its users expect; and the choice beside it, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from solvergen.solver.parameters.findings import Finding
from solvergen.solver.parameters.kinds import shortest
from solvergen.solver.parameters.model import SolverParameters
from solvergen.solver.parameters.net_state import NetSource, SourceKind
from solvergen.solver.parameters.sources import unread

Surprise = Callable[[SolverParameters], Iterator[Finding]]


def surprises(params: SolverParameters) -> Iterator[Finding]:
    """All warnings."""
    for one in SURPRISES:
        yield from one(params)


def _warning(params: SolverParameters, name: str | None, message: str, hint: str | None = None) -> Finding:
    return params.finding(name, message, hint=hint, severity="warning")


def _momentum(params: SolverParameters) -> Iterator[Finding]:
    if params.optimizer is not None or params.momentum != 0.0:
        return
    where = "momentum" if params.has("momentum") else "type"
    said = {
        "Adam": (
            "momentum is Adam's first decay (beta1), and it is 0: the first moment remembers nothing",
            "momentum: 0.9 is the paper's",
        ),
        "AdaDelta": (
            "momentum is AdaDelta's decay, and it is 0: it remembers nothing",
            "momentum: 0.95 is the paper's",
        ),
        "Nesterov": (
            "momentum is 0, with which Nesterov's rule is plain gradient descent",
            "momentum: 0.9 is usual",
        ),
    }
    if params.type in said:
        message, hint = said[params.type]
        yield _warning(params, where, f"{message}; Caffe has no other default", hint)
    elif params.type == "SGD" and not params.has("momentum"):
        yield _warning(
            params,
            None,
            "momentum isn't given, and Caffe's default is 0: plain gradient descent",
            "momentum: 0.9 is usual; give momentum: 0 if you mean that",
        )


def _clip(params: SolverParameters) -> Iterator[Finding]:
    clip = params.clip_gradients
    if clip == 0.0:
        yield _warning(
            params,
            "clip_gradients",
            "clip_gradients is 0, which makes every gradient zero: nothing is learned",
            "leave it out, or give -1, for no clipping",
        )
    elif clip > 0.0 and params.iter_size > 1:
        yield _warning(
            params,
            "clip_gradients",
            f"clip_gradients acts on the sum of the {params.iter_size} passes of iter_size, before it is "
            f"divided: the mean gradient is clipped at {clip / params.iter_size:g}",
            f"clip_gradients: {clip * params.iter_size:g} clips the mean at {shortest(clip)}",
        )


def _decay(params: SolverParameters) -> Iterator[Finding]:
    if params.weight_decay == 0.0 or params.optimizer is not None:
        return
    if params.type in ("Adam", "AdaGrad", "RMSProp", "AdaDelta"):
        sane = (
            'optimizer: "AdamW" decays the weights apart from the gradient' if params.type == "Adam" else None
        )
        yield _warning(
            params,
            "weight_decay",
            f"weight_decay is added to the gradient: {params.type} scales the decay as it scales that",
            sane,
        )


def _adadelta(params: SolverParameters) -> Iterator[Finding]:
    if params.optimizer is None and params.type == "AdaDelta" and params.base_lr not in (0.0, 1.0):
        yield _warning(
            params,
            "base_lr",
            f"base_lr multiplies AdaDelta's steps, and is {shortest(params.base_lr)}",
            "base_lr: 1 is the paper's rule",
        )


def _no_rate(params: SolverParameters) -> Iterator[Finding]:
    if params.base_lr == 0.0 and _policy_name(params) != "piecewise":
        given = "is 0" if params.has("base_lr") else "isn't given, and Caffe's default is 0"
        yield _warning(params, "base_lr", f"base_lr {given}: nothing is learned")


def _no_gamma(params: SolverParameters) -> Iterator[Finding]:
    policy = _policy_name(params)
    if params.gamma != 0.0:
        if policy == "sigmoid":
            yield _warning(
                params,
                "gamma",
                "with gamma above 0 the rate of lr_policy 'sigmoid' rises, from near 0 to base_lr; "
                "Caffe takes no gamma below 0",
                "'cosine' and 'poly' fall",
            )
        return
    given = "is 0" if params.has("gamma") else "isn't given, and Caffe's default is 0"
    said = {
        "step": "the rate is 0 from the first stepsize on",
        "multistep": "the rate is 0 from the first stepvalue on",
        "exp": "the rate is 0 from the second iteration on",
        "inv": "the rate is always base_lr",
        "sigmoid": "the rate is always half of base_lr",
    }.get(policy)
    if said is not None:
        yield _warning(params, "gamma" if params.has("gamma") else "lr_policy", f"gamma {given}: {said}")


def _no_power(params: SolverParameters) -> Iterator[Finding]:
    if _policy_name(params) in ("inv", "poly") and params.power == 0.0:
        given = "is 0" if params.has("power") else "isn't given, and Caffe's default is 0"
        yield _warning(
            params,
            "power" if params.has("power") else "lr_policy",
            f"power {given}: the rate is always base_lr",
        )


def _growing(params: SolverParameters) -> Iterator[Finding]:
    if _policy_name(params) in ("step", "multistep", "exp") and params.gamma > 1.0:
        yield _warning(params, "gamma", f"gamma is {shortest(params.gamma)}, above 1: the rate grows")


def _stepvalues(params: SolverParameters) -> Iterator[Finding]:
    if _policy_name(params) != "multistep":
        return
    values = params.stepvalue
    if not values:
        yield _warning(params, "lr_policy", "no stepvalue: the rate of lr_policy 'multistep' never drops")
    elif list(values) != sorted(set(values)):
        yield _warning(
            params,
            "stepvalue",
            "the stepvalues don't rise from one to the next: Caffe takes them in this order, one an "
            "iteration at most",
        )


def _unused(params: SolverParameters) -> Iterator[Finding]:
    """Parameters that say nothing under this policy or solver: often left over, or meant for another."""
    policy = _policy_name(params)
    of_policy = {
        "gamma": ("step", "exp", "inv", "multistep", "sigmoid"),
        "power": ("inv", "poly"),
        "stepsize": ("step", "sigmoid"),
        "stepvalue": ("multistep",),
    }
    idle = [name for name, users in of_policy.items() if params.has(name) and policy not in users]
    if idle:
        yield _warning(params, idle[0], f"lr_policy {policy!r} doesn't use {_and(idle)}")
    if params.optimizer is None:
        of_type = {
            "momentum2": ("Adam",),
            "rms_decay": ("RMSProp",),
            "delta": ("Adam", "AdaGrad", "RMSProp", "AdaDelta"),
        }
        idle = [name for name, users in of_type.items() if params.has(name) and params.type not in users]
        if idle:
            yield _warning(params, idle[0], f"type {params.type!r} doesn't use {_and(idle)}")
        if params.hyperparameters:
            yield _warning(
                params,
                "hyperparameters",
                "hyperparameters are only for an optimizer, and none is given",
                "Caffe's solvers take momentum, delta and others by their own names",
            )
        return
    idle = [name for name in ("momentum", "momentum2", "rms_decay", "delta") if params.has(name)]
    if idle:
        yield _warning(
            params,
            idle[0],
            f"optimizer {params.optimizer!r} doesn't use {_and(idle)}",
            "give what it takes under hyperparameters",
        )


def _old_type(params: SolverParameters) -> Iterator[Finding]:
    if params.has("solver_type") and not params.has("type"):
        yield _warning(params, "solver_type", f'solver_type is the old form of type: "{params.type}"', None)


def _tests(params: SolverParameters) -> Iterator[Finding]:
    if params.test_interval > 0 and not params.test_net_sources:
        yield _warning(
            params,
            "test_interval",
            "test_interval is given, but nothing is tested",
            "give a test_iter for each test",
        )


def _intervals(params: SolverParameters) -> Iterator[Finding]:
    for name in ("display", "snapshot"):
        value = getattr(params, name)
        if value < 0:
            yield _warning(params, name, f"{name} is {value}: Caffe takes that for {-value}, here it is off")
    if params.max_iter == 0:
        yield _warning(params, "max_iter", "max_iter is 0: nothing is trained")
    if params.snapshot_after_train and not params.has("snapshot_prefix"):
        yield _warning(
            params,
            "snapshot_after_train",
            "there is no snapshot_prefix for the snapshot after training (Caffe calls it '_iter_N')",
            "give a snapshot_prefix, or snapshot_after_train: false",
        )


def _prefix(params: SolverParameters) -> Iterator[Finding]:
    """Caffe doesn't make folders. That files can be written there is tried when training starts, not here."""
    folder = Path(params.snapshot_prefix or "").parent
    if (params.snapshot > 0 or params.snapshot_after_train) and not folder.is_dir():
        yield _warning(
            params,
            "snapshot_prefix",
            f"there is no folder {str(folder)!r} for snapshots (seen from the working folder, as Caffe does)",
            "make it, or training won't start",
        )


def _regularization(params: SolverParameters) -> Iterator[Finding]:
    if params.weight_decay == 0.0 and params.regularization_type not in ("L1", "L2"):
        yield _warning(
            params,
            "regularization_type",
            f"regularization_type {params.regularization_type!r} isn't one of Caffe's; without "
            "weight_decay it doesn't matter",
        )


def _reduce(params: SolverParameters) -> Iterator[Finding]:
    if params.has("layer_wise_reduce") and params.layer_wise_reduce:
        yield _warning(
            params, "layer_wise_reduce", "layer_wise_reduce is for several GPUs; here a solver runs on one"
        )


def _net_files(params: SolverParameters) -> Iterator[Finding]:
    """Caffe can't go on without them; here a net may come from elsewhere."""
    kinds: tuple[SourceKind, ...] = ("net", "train_net", "test_net")
    for kind in kinds:
        value = getattr(params, kind)
        for path in (value,) if isinstance(value, str) else value or ():
            why = unread(NetSource(kind, path=path))
            if why is not None:
                yield _warning(
                    params,
                    kind,
                    f"{kind}: {why}",
                    "whoever makes the net gets the path all the same; a state that it may hold isn't merged",
                )


def _phase(params: SolverParameters) -> Iterator[Finding]:
    if params.train_net_source is not None and params.train_net_state.phase == "TEST":
        yield _warning(params, "train_state", "the net to train is in phase TEST: a state says so")
    for test in params.test_net_sources:
        if test.state.phase == "TRAIN":
            yield _warning(params, "test_state", "a test net is in phase TRAIN: a state says so")


def _policy_name(params: SolverParameters) -> str:
    named = (params.policy or {}).get("name") or params.lr_policy
    return str(named or "")


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


SURPRISES: tuple[Surprise, ...] = (
    _old_type,
    _no_rate,
    _momentum,
    _clip,
    _decay,
    _adadelta,
    _no_gamma,
    _no_power,
    _growing,
    _stepvalues,
    _unused,
    _tests,
    _intervals,
    _prefix,
    _regularization,
    _reduce,
    _net_files,
    _phase,
)
"""Each looks at one matter."""
