"""What Caffe refuses when it makes a solver, said before anything runs.

Each function looks at one matter. The first group is what Caffe's own checks find; the second is what Caffe
would compute nonsense with, which is refused here too. What it would do rightly but not as most expect is in
``surprises``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from solvergen.runtime.naming import quoted
from solvergen.solver.parameters.error import SolverParametersError
from solvergen.solver.parameters.findings import Finding, in_order
from solvergen.solver.parameters.hints import meant
from solvergen.solver.parameters.kinds import shortest
from solvergen.solver.parameters.model import UPGRADED_TYPES, SolverParameters
from solvergen.solver.parameters.sources import TRAIN_FIELDS, is_generic
from solvergen.solver.parameters.surprises import surprises

Check = Callable[[SolverParameters], Iterator[Finding]]

TYPES = tuple(UPGRADED_TYPES.values())
"""Caffe's six solvers, as ``type`` names them."""


def check(params: SolverParameters) -> list[Finding]:
    """Everything there is to say: errors first, each in the order of the file."""
    found = [finding for one in REFUSALS for finding in one(params)]
    if not found:
        found += _choice(params)
    return in_order([*found, *surprises(params)])


# What Caffe refuses.


def _solver_type(params: SolverParameters) -> Iterator[Finding]:
    if params.has("solver_type") and params.has("type"):
        yield params.finding(
            "solver_type",
            "both type and its predecessor solver_type are given",
            hint=f'keep type: "{params.type}"',
        )
    if params.has("type") and params.type not in TYPES:
        yield params.finding(
            "type", f"unknown solver type {quoted(params.type)}", hint=_instead_of_type(params.type)
        )
    if params.has("optimizer") and (params.has("type") or params.has("solver_type")):
        yield params.finding(
            "type" if params.has("type") else "solver_type",
            "both a type of Caffe's and an optimizer are given",
            hint="leave one of them out",
        )


def _instead_of_type(name: str) -> str:
    from solvergen.solver.registry import optimizer_names

    near = meant(name, TYPES)
    if name in optimizer_names() and name.lower() not in map(str.lower, TYPES):
        return f'it is one of ours: write optimizer: "{name}", without type'
    return near


def _net(params: SolverParameters) -> Iterator[Finding]:
    given = [name for name in TRAIN_FIELDS if params.has(name)]
    if not given and params.needs_net_field:
        yield params.finding(None, "no net to train", hint=f"give one of {', '.join(TRAIN_FIELDS)}")
    if len(given) > 1:
        yield params.finding(
            given[1], f"{' and '.join(given)} all say what to train", hint="keep one of them"
        )


def _test_nets(params: SolverParameters) -> Iterator[Finding]:
    own = len(params.test_net) + len(params.test_net_param)
    iterations = len(params.test_iter)
    generic = is_generic(params)
    if generic and iterations < own:
        yield params.finding(
            "test_iter", f"{own} test nets need as many test_iter, and there are {iterations}"
        )
    if not generic and iterations != own:
        yield params.finding(
            "test_iter",
            f"{own} test nets go with as many test_iter, and there are {iterations}",
            hint="only net and net_param are tested for every further test_iter",
        )
    nets = max(iterations, own)
    if params.test_state and len(params.test_state) != nets:
        yield params.finding(
            "test_state",
            f"test_state is given {len(params.test_state)} times for {nets} test nets",
            hint="give one for each, or none",
        )
    if nets and params.test_interval <= 0:
        yield params.finding(
            "test_interval",
            "test_interval must be above 0 if there are test nets",
            hint="give one, or leave test_iter out",
        )


def _average_loss(params: SolverParameters) -> Iterator[Finding]:
    if params.average_loss < 1:
        yield params.finding("average_loss", f"average_loss must be at least 1, not {params.average_loss}")


def _snapshot(params: SolverParameters) -> Iterator[Finding]:
    if params.snapshot > 0 and not params.has("snapshot_prefix"):
        yield params.finding(
            "snapshot",
            "snapshot is given, but snapshot_prefix isn't",
            hint="Caffe takes it from the file's name, and here there is no file",
        )


def _momentum_refused(params: SolverParameters) -> Iterator[Finding]:
    if params.optimizer is None and params.type in ("AdaGrad", "RMSProp") and params.momentum != 0.0:
        yield params.finding(
            "momentum",
            f"momentum can't be used with {params.type}",
            hint='leave it out; RMSProp with momentum is optimizer: "RMSprop"'
            if params.type == "RMSProp"
            else "leave it out",
        )


def _rms_decay(params: SolverParameters) -> Iterator[Finding]:
    if params.optimizer is None and params.type == "RMSProp" and not 0.0 <= params.rms_decay < 1.0:
        yield params.finding(
            "rms_decay", f"rms_decay must be at least 0 and below 1, not {shortest(params.rms_decay)}"
        )


def _policy(params: SolverParameters) -> Iterator[Finding]:
    from solvergen.solver.policies.table import policy_of

    try:
        policy_of(params)
    except SolverParametersError as error:
        yield from error.findings


def _regularization(params: SolverParameters) -> Iterator[Finding]:
    known = ("L1", "L2")
    if params.weight_decay != 0.0 and params.regularization_type not in known:
        yield params.finding(
            "regularization_type",
            f"unknown regularization type {quoted(params.regularization_type)} with a weight_decay",
            hint=meant(params.regularization_type, known),
        )


# What Caffe would compute nonsense with.


def _finite(params: SolverParameters) -> Iterator[Finding]:
    for name in params.given:
        value = getattr(params, name)
        if isinstance(value, float) and not math.isfinite(value) and name != "clip_gradients":
            yield params.finding(name, f"{name} must be finite, not {value}")
    if math.isnan(params.clip_gradients):
        yield params.finding(
            "clip_gradients", "clip_gradients must be a number", hint="-1 is for no clipping"
        )


def _iter_size(params: SolverParameters) -> Iterator[Finding]:
    if params.iter_size < 1:
        yield params.finding(
            "iter_size",
            f"iter_size must be at least 1, not {params.iter_size}",
            hint="Caffe would divide by it and train to NaN",
        )


def _not_negative(params: SolverParameters) -> Iterator[Finding]:
    for name in ("base_lr", "momentum", "weight_decay", "delta", "max_iter"):
        value = getattr(params, name)
        if value < 0:
            yield params.finding(name, f"{name} must be at least 0, not {shortest(value)}")
    if params.keep_snapshots is not None and params.keep_snapshots < 1:
        yield params.finding(
            "keep_snapshots", "keep_snapshots must be at least 1", hint="leave it out to keep all"
        )


def _test_iterations(params: SolverParameters) -> Iterator[Finding]:
    if any(count < 1 for count in params.test_iter):
        yield params.finding(
            "test_iter",
            "every test_iter must be at least 1",
            hint="Caffe would divide by it and print NaN",
        )


def _weights(params: SolverParameters) -> Iterator[Finding]:
    if not all(name.strip() for files in params.weights for name in files.split(",")):
        yield params.finding(
            "weights", "weights names a file without a name", hint="give one, or leave it out"
        )


def _below_one(params: SolverParameters) -> Iterator[Finding]:
    if params.optimizer is not None:
        return
    names = {"Adam": ("momentum", "momentum2"), "AdaDelta": ("momentum",)}.get(params.type, ())
    for name in names:
        value = getattr(params, name)
        if not 0.0 <= value < 1.0:
            yield params.finding(
                name, f"{name} must be at least 0 and below 1 with {params.type}, not {shortest(value)}"
            )


def _choice(params: SolverParameters) -> Iterator[Finding]:
    """Looked at last: the optimizer itself checks its hyperparameters."""
    from solvergen.solver.choice import optimizer_of

    try:
        optimizer_of(params)
    except SolverParametersError as error:
        yield from error.findings


REFUSALS: tuple[Check, ...] = (
    _solver_type,
    _net,
    _test_nets,
    _average_loss,
    _snapshot,
    _momentum_refused,
    _rms_decay,
    _policy,
    _regularization,
    _finite,
    _iter_size,
    _not_negative,
    _test_iterations,
    _weights,
    _below_one,
)
"""Every check but the optimizer's own, in the order in which Caffe would come to them."""
