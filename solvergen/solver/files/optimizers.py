"""A solver's state and model as an optimizer's snapshot (``Optimizer.save``), and the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.errors import OptimizerError, SnapshotMismatch, SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import RANK_OF_SHAPE, Definition, definition_of
from solvergen.runtime.naming import did_you_mean, listed, quoted
from solvergen.runtime.state import GroupData, SnapshotData, TensorData
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.history import SPEC_OF_TYPE, arranged, history_names
from solvergen.solver.files.parameter_names import learned as learned_by_count
from solvergen.solver.files.parameter_names import model_of, owned
from solvergen.solver.registry import find_optimizer, optimizer_names, optimizer_of_spec

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer
    from solvergen.solver.choice import Chosen

_MULTIPLIERS = ("lr_mult", "decay_mult")


def class_of_spec(spec: str) -> type[Optimizer]:
    """The optimizer that is generated from a spec. Raises SolverFileError if there is none of that name."""
    found = optimizer_of_spec(spec)
    if found is None:
        known = sorted(definition_of(cls).name for cls in map(find_optimizer, optimizer_names()) if cls)
        raise SolverFileError(
            f"no optimizer {quoted(spec)}{did_you_mean(spec, known)}; one of your own is known after "
            "solvergen.solver.register_optimizer, in Python"
        )
    return found


def definition_of_spec(spec: str) -> Definition:
    """What is known of it. Raises SolverFileError."""
    return definition_of(class_of_spec(spec))


def spec_of_class(name: str) -> str:
    """The spec of a class; of one that isn't known the class's name."""
    found = find_optimizer(name)
    return name if found is None else definition_of(found).name


def optimizer_of(
    state: SolverStateData, model: ModelData | None, spec: str, *, chosen: Chosen | None, source: str
) -> tuple[Optimizer, list[str]]:
    """An optimizer at rest where the state is, and what is to be said about it.

    Its parameters are the model's that are learned; without a model, zeros. Groups and hyperparameters are
    those in the state, or those of the solver file that ``chosen`` is of, or the defaults.

    Raises:
        SolverFileError: state, model and rule don't go together.
    """
    from solvergen.solver.training.update import set_state

    definition = definition_of_spec(spec)
    if chosen is not None and chosen.optimizer_class.definition.name != spec:
        raise SolverFileError(
            f"{source}: a state of {spec}, and the solver file is of "
            f"{chosen.optimizer_class.definition.name}: give --to, or another solver file"
        )
    cls: Any = class_of_spec(spec)
    params = _parameters(state, model, definition, source)
    said: list[str] = []
    groups = _groups(state, params, definition, chosen, said)
    blocks = state.extra.get("blocks") or ({} if chosen is None else chosen.blocks)
    try:
        optimizer: Optimizer = cls(groups, backend="numpy", **({"blocks": dict(blocks)} if blocks else {}))
    except OptimizerError as error:
        raise SolverFileError(f"{source}: no {definition.class_name} can be made of it: {error}") from error
    names = [name for name in optimizer.state if name in definition.array_states]
    shapes = [array.shape for array in params.values()]
    found = arranged(state, shapes, names, spec=spec, source=source)
    live = optimizer.state
    arrays: dict[str, dict[str, Any]] = {
        name: {
            parameter: np.asarray(array, live[name][parameter].dtype, order="C")
            for parameter, array in zip(params, found[name], strict=True)
        }
        for name in names
    }
    if rest := [name for name in ({} if model is None else owned(model)) if name not in params]:
        said.append(f"{listed(rest)} of its model stay behind: an optimizer holds what it learns")
    extra = state.extra
    counts = extra.get("counts", dict.fromkeys(params, state.iter))
    whole = extra.get("digest") == definition.digest and "scalars" in extra
    if whole:
        arrays |= extra["lines"]
    beside = [name for name in (*optimizer.state, *optimizer.shared) if name not in names]
    if beside and not whole:
        said.append(f"{', '.join(beside)} begin anew: the file doesn't hold them")
    scalars, shared = (extra["scalars"], extra["shared"]) if whole else ({}, {})
    try:
        set_state(optimizer, arrays, counts, scalars, shared)
    except (OptimizerError, SnapshotMismatch, KeyError) as error:
        raise SolverFileError(f"{source}: it doesn't fit {definition.class_name}: {error}") from error
    return optimizer, said


def _parameters(
    state: SolverStateData, model: ModelData | None, definition: Definition, source: str
) -> dict[str, HostArray]:
    """What is learned, by name, in the order of the history."""
    learned = state.extra.get("parameters")
    if model is None:
        if learned is None:
            raise SolverFileError(
                f"{source}: without its model nothing says what its parameters are: convert it with it"
            )
        count = len(learned)
        if len(state.history) < count or not count:
            raise SolverFileError(f"{source}: without its model nothing says what shapes its parameters have")
        return {
            name: np.zeros(array.shape, array.dtype)
            for name, array in zip(learned, state.history[:count], strict=True)
        }
    if learned is None:  # Caffe's files name none
        count, odd = divmod(len(state.history), max(len(history_names_of(definition)), 1))
        found = learned_by_count(model, count)
        if odd or (state.history and count != len(found)):
            raise SolverFileError(
                f"{source}: a history of {len(state.history)} arrays, and {len(found)} parameters in the "
                f"model: which of them {definition.name} learned isn't said (where two layers share one, "
                "--shared LAYER/NUMBER=LAYER/NUMBER does)"
            )
        return found
    found = owned(model)
    if missing := [name for name in learned if name not in found]:
        raise SolverFileError(f"{source}: its model has no parameter {listed(missing)}")
    return {name: found[name] for name in learned}


def history_names_of(definition: Definition) -> tuple[str, ...]:
    """The states of a history under the options that are the defaults."""
    cls = class_of_spec(definition.name)
    return history_names(cls, _default_options(cls))


def _default_options(cls: Any) -> dict[str, bool]:
    options: Mapping[str, bool] = cls([np.zeros(1, np.float32)], backend="numpy").options
    return dict(options)


def _groups(
    state: SolverStateData,
    params: Mapping[str, HostArray],
    definition: Definition,
    chosen: Chosen | None,
    said: list[str],
) -> list[dict[str, Any]]:
    told = state.extra.get("groups")
    if chosen is not None:
        said += left_behind(chosen)
        return [{"params": dict(params), **chosen.hyperparameters, **chosen.options}]
    if told is None:
        said.append(
            f"hyperparameters are the defaults of {definition.class_name}: --solver FILE gives others, and "
            "Optimizer.load(..., hyperparameters=False) leaves yours"
        )
        return [{"params": dict(params)}]
    return [
        {
            "params": {name: params[name] for name in group["members"]},
            **_known(group["hyperparameters"], definition.hyperparameter_names),
            **_known(group["options"], definition.option_names),
            **{n: v for n, v in group["multipliers"].items() if n in _MULTIPLIERS and v != 1},
        }
        for group in told
    ]


def left_behind(chosen: Chosen) -> list[str]:
    """What a solver file does to gradients before the rule gets them, and to parameters after it, in
    sentences; none if nothing."""
    held = []
    if chosen.constraints:
        names = listed(chosen.constraints)
        held = [f"constraints of {names} in the solver file stay behind: opt.constraint takes them"]
    around = chosen.wrappers
    if around is None:
        return held
    found = [
        name
        for name, there in (
            ("clip_gradients", around.clip_grad_norm is not None),
            ("iter_size", around.normalize != 1.0),
            ("weight_decay", around.l1 != 0.0 or around.l2 != 0.0),
        )
        if there
    ]
    return [f"{', '.join(found)} of the solver file stays behind: solvergen.Wrappers can do it", *held]


def _known(values: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}


def from_snapshot(data: SnapshotData, source: str) -> tuple[SolverStateData, ModelData | None, list[str]]:
    """What an optimizer's snapshot holds as a solver's state and model, and what is to be said about it.

    ``iter`` is the most updates that a parameter has seen.

    Raises:
        SolverFileError: it is of an optimizer that isn't solvergen's own, or its tensors have different
            states.
    """
    from solvergen.runtime.rewrapping import without_wrappers

    definition = definition_of_spec(data.spec.removeprefix("wrapped_"))
    data = without_wrappers(data, definition, source)
    kinds = dict(data.schema)
    held = {tuple(sorted((*tensor.arrays, *tensor.scalars))) for tensor in data.tensors}
    if len(held) > 1:
        raise SolverFileError(f"{source}: its groups have different states; a solver has one rule")
    first = data.tensors[0]
    lines = [name for name in first.arrays if kinds[name] in RANK_OF_SHAPE]
    arrays = [name for name in definition.array_states if name in first.arrays and name not in lines]
    extra: dict[str, Any] = {
        "solver_type": solver_type(definition),
        "digest": data.digest,
        "states": arrays,
        "parameters": [tensor.name for tensor in data.tensors],
        "counts": {tensor.name: tensor.t for tensor in data.tensors},
        "scalars": {name: {t.name: t.scalars[name] for t in data.tensors} for name in first.scalars},
        "lines": {name: {t.name: t.arrays[name] for t in data.tensors} for name in lines},
        "shared": dict(data.shared),
        "groups": [group_as_data(group) for group in data.groups],
    }
    if blocks := {tensor.name: tensor.blocks for tensor in data.tensors if tensor.blocks != 1}:
        extra["blocks"] = blocks
    state = SolverStateData(
        iter=max(tensor.t for tensor in data.tensors),
        history=tuple(tensor.arrays[name] for name in arrays for tensor in data.tensors),
        extra=extra,
    )
    params = _with_params(data.tensors)
    said = [] if params is not None else ["it holds no parameters, so there is no model"]
    if data.constraints:
        said.append(
            f"the constraints of {listed(list(data.constraints))} stay behind: a solver's are in its file"
        )
    if data.frozen:
        said.append(f"{listed(data.frozen)} was frozen, and no longer is: give it an lr_mult of 0")
    return state, None if params is None else model_of(params), said


def _with_params(tensors: Sequence[TensorData]) -> dict[str, HostArray] | None:
    found = {tensor.name: tensor.param for tensor in tensors}
    kept = {name: param for name, param in found.items() if param is not None}
    return kept if len(kept) == len(found) else None


def solver_type(definition: Definition) -> str:
    """Caffe's type, or the class of another optimizer."""
    types = {known: name for name, known in SPEC_OF_TYPE.items()}
    return types.get(definition.name, definition.class_name)


def group_as_data(group: GroupData) -> dict[str, Any]:
    """A group as a native state holds it."""
    return {
        "members": list(group.members),
        "hyperparameters": dict(group.hyperparameters),
        "options": dict(group.options),
        "multipliers": dict(group.multipliers),
    }
