"""An optimizer's memory taken out as plain data, and put back.

The data goes to a snapshot (``Optimizer.save``) or becomes a ``state_dict``; on the way back all of it is
checked before anything changes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

import solvergen
from solvergen.errors import OptimizerError, SnapshotWarning
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import Backend, Workspace
from solvergen.runtime.blocks import BLOCKS
from solvergen.runtime.buffers import ARRAY_TYPES, address_of, type_name
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.constraints import from_data
from solvergen.runtime.definition import Definition, Rank
from solvergen.runtime.groups import Group, as_float
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.lines import LineStates
from solvergen.runtime.naming import listed, with_article
from solvergen.runtime.spans import Spans
from solvergen.runtime.state import GroupData, SnapshotData, TensorData
from solvergen.runtime.tensors import Tensor, check_parameter, check_states, line_states_of


def snapshot(
    definition: Definition,
    backend: Backend,
    groups: Sequence[Group],
    tensors: Sequence[Tensor],
    cohorts: Cohorts,
    workspace: Workspace | None,
    *,
    params: bool,
    frozen: tuple[str, ...] = (),
    constraints: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> SnapshotData:
    """Copies of everything; of the parameters too where ``params`` says so."""
    kept = []
    states, shared = _read(workspace)
    lines, tables = _read_lines(definition, tensors, workspace)
    for i, tensor in enumerate(tensors):
        cohort = cohorts.of(i)
        active = definition.active_state(**groups[tensor.group].options)
        scalars = dict(zip(definition.scalar_states, cohort.scalars, strict=True))
        if definition.device_states:
            scalars |= dict(zip(definition.device_states, states[i].tolist(), strict=True))
        kept.append(
            TensorData(
                name=tensor.plan.name,
                shape=tensor.plan.shape,
                dtype=tensor.dtype,
                t=cohort.t,
                scalars={name: scalars[name] for name in definition.all_scalar_states if name in active},
                arrays={
                    name: backend.to_host(state).reshape(tensor.plan.shape)
                    for name, state in zip(definition.array_states, tensor.plan.states, strict=True)
                    if state is not None and name not in definition.copies
                }
                | {name: lines.get(tables, name, i) for name in lines if name in active},
                param=backend.to_host(tensor.plan.param).reshape(tensor.plan.shape) if params else None,
                blocks=tensor.plan.blocks,
            )
        )
    return SnapshotData(
        spec=definition.name,
        class_name=definition.class_name,
        digest=definition.digest,
        version=solvergen.__version__,
        schema=tuple((state.name, state.shape) for state in definition.state if not state.dtype),
        groups=tuple(_group_data(group) for group in groups),
        tensors=tuple(kept),
        shared={
            name: value
            for name, value in zip(definition.shared_states, shared.tolist(), strict=True)
            if any(name in definition.active_state(**group.options) for group in groups)
        },
        frozen=frozen,
        constraints=constraints,
    )


def restore(
    data: SnapshotData,
    definition: Definition,
    backend: Backend,
    groups: Sequence[Group],
    tensors: Sequence[Tensor],
    cohorts: Cohorts,
    workspace: Workspace | None,
    *,
    source: str,
    params: bool,
    hyperparameters: bool,
    behind: Callable[[], None],
) -> None:
    """Put everything back. Raises SnapshotMismatch, with nothing changed, where it doesn't fit.

    ``source`` names where the data comes from in messages. ``behind`` is called when the rest is done:
    signals find both or neither.
    """
    from solvergen.runtime import snapshots

    layouts = [snapshots.TensorLayout(t.plan.name, t.plan.shape, t.dtype, t.plan.blocks) for t in tensors]
    found = snapshots.match(
        data,
        definition,
        [_group_data(group) for group in groups],
        layouts,
        source=source,
        hyperparameters=hyperparameters,
    )
    for warning in found.warnings:
        warnings.warn(warning, SnapshotWarning, stacklevel=4)
    restored = [
        # A scalar state that doesn't exist keeps its value, which nothing reads.
        Cohort(
            tensor.group,
            kept.t,
            tuple(
                float(kept.scalars.get(name, old))
                for name, old in zip(definition.scalar_states, cohorts.of(i).scalars, strict=True)
            ),
            [i],
        )
        for i, (tensor, kept) in enumerate(zip(tensors, found.tensors, strict=True))
    ]

    states, shared = _read(workspace)
    lines, tables = _read_lines(definition, tensors, workspace)
    for i, kept in enumerate(found.tensors):
        for column, name in enumerate(definition.device_states):
            states[i, column] = kept.scalars.get(name, states[i, column])
        for name in (name for name in lines if name in kept.arrays):
            lines.put(tables, name, i, kept.arrays[name])
    for column, name in enumerate(definition.shared_states):
        shared[column] = data.shared.get(name, shared[column])

    copies: list[tuple[Array, HostArray]] = []
    for tensor, kept in zip(tensors, found.tensors, strict=True):
        check_states(definition, tensor.plan)
        for name, state in zip(definition.array_states, tensor.plan.states, strict=True):
            if state is not None and name not in definition.copies:
                copies.append((state, kept.arrays[name]))
        if params and kept.param is not None:
            check_parameter(tensor.plan)
            copies.append((tensor.plan.param, kept.param))
    # A state_dict may hold this optimizer's own arrays: one is not to be overwritten before it is read.
    written = Spans.over([target for target, _ in copies], backend.span_of)
    copies = [
        (target, kept_array.copy() if _meets(written, kept_array) else kept_array)
        for target, kept_array in copies
    ]

    def put_back() -> None:
        for target, kept_array in copies:
            backend.copy_in(target, kept_array)
        if workspace is not None:
            workspace.write(states, shared)
            workspace.write_lines(tables)
        cohorts.restore(restored)
        if hyperparameters:
            for group, values in zip(groups, found.groups, strict=True):
                group.restore(values.hyperparameters, values.multipliers)
        behind()

    uninterrupted(put_back)


def _read(workspace: Workspace | None) -> tuple[HostArray, HostArray]:
    """The scalar and the shared states that live beside the tensors: none without a workspace."""
    return (np.zeros((0, 0)), np.zeros(0)) if workspace is None else workspace.read()


def _read_lines(
    definition: Definition, tensors: Sequence[Tensor], workspace: Workspace | None
) -> tuple[LineStates, Mapping[Rank, HostArray]]:
    """The states of lines: where each is, and their tables."""
    lines = line_states_of(definition, tensors)
    return lines, {} if workspace is None or not definition.has_lines else workspace.read_lines()


def as_dict(data: SnapshotData) -> dict[str, Any]:
    """As dicts, lists, strings, numbers and arrays. ``shared`` is there if the rule has such states, and so
    are the ``blocks`` of tensors."""
    has_blocks = any(kind == BLOCKS for _, kind in data.schema)
    return {
        "spec": data.spec,
        "class_name": data.class_name,
        "digest": data.digest,
        "version": data.version,
        "schema": dict(data.schema),
        "groups": [
            {
                "members": list(group.members),
                "hyperparameters": dict(group.hyperparameters),
                "options": dict(group.options),
                "multipliers": dict(group.multipliers),
            }
            for group in data.groups
        ],
        "tensors": {
            tensor.name: {
                "shape": list(tensor.shape),
                "dtype": tensor.dtype,
                "t": tensor.t,
                "scalars": dict(tensor.scalars),
                "arrays": dict(tensor.arrays),
                **({BLOCKS: tensor.blocks} if has_blocks else {}),
            }
            for tensor in data.tensors
        },
        **({"shared": dict(data.shared)} if any(kind == "shared" for _, kind in data.schema) else {}),
        **({"frozen": list(data.frozen)} if data.frozen else {}),
        **({"constraints": _plain(data.constraints)} if data.constraints else {}),
    }


def from_dict(state_dict: Any) -> SnapshotData:
    """What ``as_dict`` made. Raises OptimizerError where the form isn't that."""
    read = _Reader(state_dict, "the state_dict")
    kinds = read.mapping("schema").values()
    has_shared, has_blocks = "shared" in kinds, BLOCKS in kinds
    frozen = tuple(map(read.is_text, read.sequence("frozen"))) if "frozen" in state_dict else ()
    if unknown := [name for name in frozen if name not in read.mapping("tensors")]:
        raise OptimizerError(f"'frozen' in the state_dict has {listed(unknown)}, but there is no such tensor")
    constraints = read.mapping("constraints") if "constraints" in state_dict else {}
    for name, one in constraints.items():
        if name not in read.mapping("tensors"):
            raise OptimizerError(
                f"'constraints' in the state_dict has {name!r:.60}, but there is no such tensor"
            )
        from_data(one, f"the constraint of {name!r} in the state_dict")
    return SnapshotData(
        spec=read.text("spec"),
        class_name=read.text("class_name"),
        digest=read.text("digest"),
        version=read.text("version"),
        schema=tuple((name, read.is_text(shape)) for name, shape in read.mapping("schema").items()),
        groups=tuple(_group_from(entry, i) for i, entry in enumerate(read.sequence("groups"))),
        tensors=tuple(
            _tensor_from(name, entry, has_blocks) for name, entry in read.mapping("tensors").items()
        ),
        shared=read.numbers("shared") if has_shared else {},
        frozen=frozen,
        constraints=constraints,
    )


def _plain(constraints: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: dict(one) for name, one in constraints.items()}


def _meets(written: Spans, array: HostArray) -> bool:
    start = address_of(array)
    return written.met_by(start, start + array.nbytes) is not None


def _group_data(group: Group) -> GroupData:
    numbers = {name: float(value) for name, value in group.hyperparameters.items()}
    return GroupData(group.names, numbers, dict(group.options), group.multipliers)


def _group_from(entry: Any, i: int) -> GroupData:
    read = _Reader(entry, f"group {i} of the state_dict")
    return GroupData(
        members=tuple(read.is_text(name) for name in read.sequence("members")),
        hyperparameters=read.numbers("hyperparameters"),
        options={name: read.switch(value) for name, value in read.mapping("options").items()},
        multipliers=read.numbers("multipliers"),
    )


def _tensor_from(name: str, entry: Any, has_blocks: bool) -> TensorData:
    read = _Reader(entry, f"tensor {name!r} of the state_dict")
    arrays = {}
    for state, array in read.mapping("arrays").items():
        if type(array) not in ARRAY_TYPES:
            raise OptimizerError(
                f"state {state!r} of tensor {name!r} in the state_dict is "
                f"{with_article(type_name(array))}, not a "
                "numpy.ndarray"
            )
        native = array.dtype.newbyteorder("=")
        arrays[state] = array.astype(native, order="C", subok=False, copy=False)
    return TensorData(
        name=name,
        shape=tuple(read.whole(n) for n in read.sequence("shape")),
        dtype=read.text("dtype"),
        t=read.whole(read.entry("t")),
        scalars=read.numbers("scalars"),
        arrays=arrays,
        blocks=read.whole(read.entry(BLOCKS)) if has_blocks else 1,
    )


class _Reader:
    """Reads entries of a mapping and says what is wrong with them."""

    def __init__(self, mapping: Any, what: str) -> None:
        if not isinstance(mapping, Mapping):
            raise OptimizerError(f"{what} must be a mapping, not {mapping!r:.60}")
        self._mapping = mapping
        self._what = what

    def entry(self, key: str) -> Any:
        if key not in self._mapping:
            raise OptimizerError(f"{self._what} has no {key!r}; pass what state_dict() returned")
        return self._mapping[key]

    def text(self, key: str) -> str:
        return self._checked(key, str)  # type: ignore[no-any-return]

    def mapping(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._checked(key, Mapping)
        for name in found:
            if not isinstance(name, str):
                raise OptimizerError(f"{key!r} in {self._what} has the key {name!r:.60}; names are strings")
        return found

    def sequence(self, key: str) -> Sequence[Any]:
        return self._checked(key, (list, tuple))  # type: ignore[no-any-return]

    def numbers(self, key: str) -> dict[str, float]:
        result = {}
        for name, value in self.mapping(key).items():
            what = f"{key}[{name!r}] in {self._what}"
            if isinstance(value, (bool, np.bool_)) or not isinstance(
                value, (int, float, np.integer, np.floating)
            ):
                raise OptimizerError(f"{what} isn't a number, but {value!r:.60}")
            try:
                result[name] = as_float(value)
            except OverflowError:
                raise OptimizerError(f"{what} is too large for a float") from None
        return result

    def is_text(self, value: Any) -> str:
        if not isinstance(value, str):
            raise OptimizerError(f"{self._what} has {value!r:.60} where a string is due")
        return value

    def switch(self, value: Any) -> bool:
        if not isinstance(value, (bool, np.bool_)):
            raise OptimizerError(f"{self._what} has {value!r:.60} where True or False is due")
        return bool(value)

    def whole(self, value: Any) -> int:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
            raise OptimizerError(f"{self._what} has {value!r:.60} where a whole number of at least 0 is due")
        return int(value)

    def _checked(self, key: str, kind: Any) -> Any:
        value = self.entry(key)
        if not isinstance(value, kind):
            raise OptimizerError(f"{key!r} in {self._what} is {value!r:.60}")
        return value
