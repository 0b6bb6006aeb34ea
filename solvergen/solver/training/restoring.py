"""A Solver's files: what goes into them, and what comes back."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.wrappers import PREFIX
from solvergen.solver.net.protocol import Blob, LayerBlobs, Net, Seedable, Seekable
from solvergen.solver.training import events
from solvergen.solver.training.arrays import can_take, copy_into, holds, to_host
from solvergen.solver.training.error import TrainingError
from solvergen.solver.training.update import set_state

if TYPE_CHECKING:
    from solvergen.solver.files.data import LayerData, ModelData, SolverStateData
    from solvergen.solver.training.solver import Solver

SAME_HISTORY = ({"SGD", "Nesterov"},)
"""Solvers whose histories mean the same: a sum of gradients times learning rates."""


def write(solver: Solver) -> tuple[str, str]:
    """Write the model and the state; their paths."""
    from solvergen.solver import files
    from solvergen.solver.files.file_names import checked_format, pair

    param = solver.param
    prefix = _prefix(solver)
    names = pair(prefix, solver.iter, checked_format(param.snapshot_format))
    solver.say(events.Snapshotting(solver.iter, names.model, "model", param.snapshot_format))
    solver.say(events.Snapshotting(solver.iter, names.state, "state", param.snapshot_format))
    if left_out := _left_out(solver):
        solver.say(
            events.Warned(
                solver.iter, f"{names.state}: it will not hold {left_out} of {solver.type}, {_NO_PLACE}"
            )
        )
    written = files.write_pair(
        prefix,
        solver.iter,
        model_of(solver.net, diffs=param.snapshot_diff),
        _state_of(solver, names.model),
        param.snapshot_format,
        keep=param.keep_snapshots,
    )
    return os.fspath(written[0]), os.fspath(written[1])


def probe(solver: Solver) -> None:
    """Raises an error if snapshots could not be written where they are to be, or couldn't hold it all."""
    from solvergen.solver import files
    from solvergen.solver.files import plain

    files.probe_writable(_prefix(solver))
    if solver.param.snapshot_format == "SAFETENSORS":
        try:
            plain.encode(_extra(solver))
        except SolverFileError as error:
            raise TrainingError(f"snapshots can't hold what a net says of itself: {error}") from error


def _prefix(solver: Solver) -> str:
    prefix = solver.param.snapshot_prefix
    if not prefix:
        raise TrainingError("snapshots need a name: give snapshot_prefix")
    return prefix


def model_of(net: Net, *, diffs: bool = False) -> ModelData:
    """A net's parameters, copied; what two layers share is one array."""
    from solvergen.solver.files import LayerData, ModelData

    copies: dict[int, np.ndarray[Any, Any]] = {}

    def copied(array: Any) -> np.ndarray[Any, Any]:
        if id(array) not in copies:
            copies[id(array)] = to_host(array)
        return copies[id(array)]

    learned = {id(blob.data) for blob in net.learnable}

    def difference(blob: Blob) -> np.ndarray[Any, Any]:
        return copied(blob.diff) if id(blob.data) in learned else np.zeros_like(copied(blob.data))

    return ModelData(
        net.name,
        tuple(
            LayerData(
                layer.name,
                layer.type,
                tuple(copied(blob.data) for blob in layer.blobs),
                tuple(map(difference, layer.blobs)) if diffs else None,
                names=tuple(_name_in(layer, blob) for blob in layer.blobs),
            )
            for layer in net.layers
        ),
    )


def _name_in(layer: LayerBlobs, blob: Blob) -> str:
    """A parameter's name, as of this layer where it is another one's."""
    own = f"{blob.layer}."
    if blob.layer != layer.name and blob.name.startswith(own):
        return f"{layer.name}.{blob.name.removeprefix(own)}"
    return blob.name


def _state_of(solver: Solver, model_path: str) -> SolverStateData:
    from solvergen.solver.files import SolverStateData

    native = solver.param.snapshot_format == "SAFETENSORS"
    return SolverStateData(
        iter=solver.iter,
        learned_net=model_path,
        history=tuple(to_host(array) for array in solver.history),
        current_step=int(solver.policy_state.get("current_step", 0)),
        extra=_extra(solver) if native else {},
    )


def _extra(solver: Solver) -> dict[str, Any]:
    """What Caffe's files leave out."""
    optimizer = solver.optimizer
    nets = (solver.net, *solver.test_nets)
    return {
        "solver_type": solver.type,
        "digest": solver.update.definition.digest,
        "states": list(solver.update.array_states),
        "parameters": [blob.name for blob in solver.net.learnable],
        "counts": solver.update.counts,
        "scalars": {
            name: {key: float(value) for key, value in values.items()}
            for name, values in solver.update.beside(solver.update.scalar_states).items()
        },
        "lines": {
            name: {key: to_host(value) for key, value in values.items()}
            for name, values in solver.update.beside(solver.update.line_states).items()
        },
        "shared": _own(optimizer.shared),
        "groups": solver.update.groups,
        **({"blocks": solver.update.blocks} if solver.update.blocks else {}),
        "policy": {"name": solver.policy.name, "state": dict(solver.policy_state)},
        "smoothed_loss": solver.smoothing.state(),
        "data": [net.position() if isinstance(net, Seekable) else None for net in nets],
        "random": [dict(net.rng_state()) if isinstance(net, Seedable) else None for net in nets],
    }


_NO_PLACE = (
    "since Caffe's files have no place for states that aren't shaped as parameters: "
    "a run that goes on from it begins with them anew (snapshot_format: SAFETENSORS holds everything)"
)


def _left_out(solver: Solver) -> str:
    """The states that a file in Caffe's formats lacks, for people; empty if there are none."""
    native = solver.param.snapshot_format == "SAFETENSORS"
    return "" if native else ", ".join(solver.update.beside_history)


def _own(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items() if not name.startswith(PREFIX)}


def restore(solver: Solver, path: str | os.PathLike[str], *, history: bool) -> None:
    """Put a state back, and the model that it names. What doesn't fit is an error before anything changes."""
    from solvergen.solver import files

    with _warnings_said(solver):
        state, model = files.read_pair(path)
    where = os.fspath(path)
    extra = state.extra
    carried = history and _carries(solver, extra, where)
    arrays = _arrays(solver, state, where) if carried else None
    copies = [] if model is None else _matched(solver.net, model, os.fspath(path), partial(_warn, solver))
    if arrays is not None:
        _put_back(solver, state, arrays, where)  # which may find that something doesn't fit
    for blob, array in copies:
        copy_into(blob.data, array)
    if arrays is None:
        solver.begin_anew()
    solver.went_back(state.iter, _policy_state(solver, state), extra.get("smoothed_loss"))
    _begin_policy_anew(solver, state, where)
    nets = (solver.net, *solver.test_nets)
    for net, position, random in zip(
        nets, extra.get("data", [None] * len(nets)), extra.get("random", [None] * len(nets)), strict=False
    ):
        if position is not None and isinstance(net, Seekable):
            _given_back(
                solver, net.seek, position, f"{where}: the data of {net.name!r}", "batches begin anew"
            )
        elif "data" in extra and net is solver.net:
            text = "the net's data can't be sought: batches begin anew"
            _warn(solver, f"{where}: {text}")
        if random is not None and isinstance(net, Seedable):
            what = f"{where}: the random numbers of {net.name!r}"
            _given_back(solver, net.set_rng_state, random, what, "they stay as they are")
    solver.say(events.Resumed(solver.iter, where, solver.type))


def _given_back(solver: Solver, to: Callable[[Any], None], saved: Any, what: str, instead: str) -> None:
    """Hand a net what it gave: another kind of net, or of data, may make nothing of it."""
    try:
        to(saved)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        told = f"can't go back to where they were ({type(error).__name__}: {error})"
        _warn(solver, f"{what} {told}: {instead}")


def _begin_policy_anew(solver: Solver, state: SolverStateData, where: str) -> None:
    """Say so, where a policy has a state that the file doesn't hold."""
    saved = state.extra.get("policy")
    known = saved is not None and saved["name"] == solver.policy.name
    if not known and set(solver.policy.initial()) - {"current_step"}:
        text = f"it holds no state of lr_policy {solver.policy.name!r}, which begins anew"
        _warn(solver, f"{where}: {text}")


def _carries(solver: Solver, extra: Mapping[str, Any], where: str) -> bool:
    """Whether the optimizer's states go on: if they are of the same rule, or mean the same."""
    theirs, mine = extra.get("solver_type"), solver.type
    if theirs is None or extra.get("digest") == solver.update.definition.digest:
        return True
    # Caffe's SGD and the optimizer of that name are two rules: their states have different names.
    same_states = extra.get("states") == list(solver.update.array_states)
    if same_states and theirs == mine:
        text, carried = f"{theirs} had other equations when it was written", True
    elif same_states and any({theirs, mine} <= same for same in SAME_HISTORY):
        text, carried = f"it is of {theirs}; its history means the same to {mine}, and is kept", True
    else:
        text = (
            f"it is of {theirs if theirs != mine else f'another {theirs}'}: weights and the iteration are "
            f"kept, and the states of {mine} begin anew (solvergen snapshot convert carries some over)"
        )
        carried = False
    _warn(solver, f"{where}: {text}")
    return carried


def _arrays(solver: Solver, state: SolverStateData, where: str) -> dict[str, dict[str, Any]]:
    """The history by state and parameter. Raises SolverFileError where it is another's."""
    from solvergen.solver import files

    states = solver.update.array_states
    blobs = {blob.name: blob for blob in solver.net.learnable}
    # By name, where the file has names: another order of the same parameters is the same state.
    theirs = state.extra.get("parameters", ())
    order = theirs if sorted(theirs) == sorted(blobs) else list(blobs)
    with _warnings_said(solver):
        found = files.arranged(
            state,
            [tuple(blobs[name].data.shape) for name in order],
            states,
            spec=solver.update.definition.name,
            source=where,
        )
    live = solver.optimizer.state
    return {
        name: {
            parameter: np.asarray(array, dtype=np.dtype(str(live[name][parameter].dtype)), order="C")
            for parameter, array in zip(order, found[name], strict=True)
        }
        for name in states
    }


@contextmanager
def _warnings_said(solver: Solver) -> Iterator[None]:
    """What is warned of in the block, told as events."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        _warn(solver, str(warning.message))


def _put_back(
    solver: Solver, state: SolverStateData, arrays: Mapping[str, Mapping[str, Any]], where: str
) -> None:
    """The optimizer's states. Caffe's files have arrays alone; the rest begins anew, and updates are counted
    for the solver as a whole."""
    extra = state.extra
    names = [blob.name for blob in solver.net.learnable]
    beside = solver.update.beside_history
    # What has lost all its states begins as if there had been no update.
    counts: Mapping[str, int] = dict.fromkeys(names, state.iter if arrays or not beside else 0)
    scalars: Mapping[str, Mapping[str, float]] = {}
    shared: Mapping[str, float] = {}
    same_rule = extra.get("digest") == solver.update.definition.digest
    if same_rule and set(extra.get("counts", ())) == set(names):
        _check_blocks(solver, extra, where)
        try:
            counts, shared = extra["counts"], extra["shared"]
            scalars = {name: extra["scalars"][name] for name in solver.update.scalar_states}
            arrays = {**arrays, **{name: extra["lines"][name] for name in solver.update.line_states}}
        except KeyError as error:
            raise TrainingError(f"{where}: it has no {error.args[0]}: damaged or foreign") from error
    elif beside:
        text = f"it doesn't hold {', '.join(beside)} of {solver.type}, which begins with them anew"
        solver.say(events.Warned(solver.iter, f"{where}: {text}"))
    try:
        set_state(solver.optimizer, arrays, counts, scalars, shared)
    except KeyError as error:
        raise TrainingError(f"{where}: it has no states of {error.args[0]}: damaged or foreign") from error


def _check_blocks(solver: Solver, extra: Mapping[str, Any], where: str) -> None:
    """Raise TrainingError for states of other blocks than parameters fall into here."""
    theirs, mine = extra.get("blocks", {}), solver.update.blocks
    for name in dict.fromkeys([*theirs, *mine]):
        there, here = theirs.get(name, 1), mine.get(name, 1)
        if there != here:
            raise TrainingError(
                f"{where}: {name!r} falls into {there} blocks in it, and into {here} here: give "
                f"blocks: {{{name}: {there}}} in the solver file, or restore without the history"
            )


def _policy_state(solver: Solver, state: SolverStateData) -> Mapping[str, Any]:
    saved = state.extra.get("policy")
    if saved is not None and saved["name"] == solver.policy.name:
        return dict(saved["state"])
    initial = dict(solver.policy.initial())
    if "current_step" in initial:
        initial["current_step"] = state.current_step
    return initial


def load_weights(net: Net, path: str | os.PathLike[str], warn: Callable[[str], None]) -> None:
    """Copy the parameters of a model file into a net; ``warn`` hears of layers that the other one lacks."""
    from solvergen.solver import files

    for blob, array in _matched(net, files.read_model(path), os.fspath(path), warn):
        copy_into(blob.data, array)


def _warn(solver: Solver, text: str) -> None:
    solver.say(events.Warned(solver.iter, text))


def _matched(
    net: Net, model: ModelData, where: str, warn: Callable[[str], None]
) -> list[tuple[Blob, np.ndarray[Any, Any]]]:
    """What of a model goes where: by the layers' names, and where a file names parameters, by these names
    what it has in other layers or in one layer alone. Raises an error where shapes differ, and for read-only
    arrays that would have to change."""
    from solvergen.solver import files

    layers = {layer.name: layer for layer in net.layers}
    uses = Counter(id(blob.data) for layer in net.layers for blob in layer.blobs)
    elsewhere = _Elsewhere(model)
    pairs: list[tuple[LayerBlobs, tuple[np.ndarray[Any, Any] | None, ...]]] = []
    lacking = []
    for source in model.layers:
        target = layers.pop(source.name, None)
        if target is None:
            lacking.append(source)
            continue
        missing = len(target.blobs) - len(source.blobs) if source.partial else 0
        found = source.blobs + (None,) * missing
        if len(found) < len(target.blobs):
            found = elsewhere.blobs_of(target) or found
        if len(found) != len(target.blobs):
            raise TrainingError(
                f"{where}: layer {source.name!r} has {len(source.blobs)} parameters, the net's "
                f"{len(target.blobs)}"
            )
        mine = [_name_in(target, blob) for blob in target.blobs]
        if source.names is not None and sorted(source.names) == sorted(mine):
            found = tuple(found[source.names.index(name)] for name in mine)
        pairs.append((target, found))
    for name, layer in layers.items():
        blobs = elsewhere.blobs_of(layer)
        if blobs is not None:
            pairs.append((layer, blobs))
        elif layer.blobs:
            warn(f"{where}: there is no layer {name!r}, whose parameters stay")
    for source in lacking:
        if source.blobs and not elsewhere.has_given(source):
            warn(f"{where}: ignoring layer {source.name!r}, which the net lacks")
    copies = []
    for target, found in pairs:
        for index, (array, blob) in enumerate(zip(found, target.blobs, strict=True)):
            what = f"{where}: parameter {index} of layer {target.name!r}"
            if array is None:  # in HDF5 its owner alone has it
                if uses[id(blob.data)] == 1:
                    raise TrainingError(f"{what} is missing")
                continue
            array = files.fitted(array, tuple(blob.data.shape), what)
            if can_take(blob.data):
                copies.append((blob, array))
            elif not holds(blob.data, array):
                raise TrainingError(
                    f"{what}, {blob.name!r}, is read-only in the net and has other numbers in the file; "
                    "nothing was changed (array.flags.writeable = True lets it be restored)"
                )
    return copies


class _Elsewhere:
    """A model's parameters by name: what became of an optimizer's snapshot has layers that are guessed."""

    def __init__(self, model: ModelData) -> None:
        self._arrays = {
            name: blob
            for layer in model.layers
            for name, blob in zip(layer.names or (), layer.blobs, strict=False)
        }
        self._given: set[str] = set()

    def blobs_of(self, layer: LayerBlobs) -> tuple[np.ndarray[Any, Any] | None, ...] | None:
        """The arrays of all of a layer's parameters, by their names; None if one isn't there."""
        names = [
            name if name in self._arrays else blob.name
            for blob in layer.blobs
            for name in [_name_in(layer, blob)]
        ]
        if not names or not all(name in self._arrays for name in names):
            return None
        self._given.update(names)
        return tuple(self._arrays[name] for name in names)

    def has_given(self, layer: LayerData) -> bool:
        """Whether all that this layer of the file has was taken by name."""
        return set(layer.names or ("",)) <= self._given
