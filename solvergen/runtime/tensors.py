"""The tensors of an optimizer: checked parameters and their state arrays, by position and by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvergen.errors import ArrayError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend, TensorPlan, Workspace
from solvergen.runtime.buffers import writable
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group
from solvergen.runtime.lines import LineStates
from solvergen.runtime.spans import overlapping


@dataclass(frozen=True, eq=False)
class Tensor:
    """One parameter. ``plan`` has its arrays, ``dtype`` names its storage type, ``group`` is a position."""

    plan: TensorPlan
    dtype: str
    group: int


def adopt_all(backend: Backend, names: Sequence[str], arrays: Sequence[object]) -> list[Array]:
    """Check every parameter, and that none shares memory with another. Raises ArrayError."""
    adopted = [backend.adopt(name, array) for name, array in zip(names, arrays, strict=True)]
    found = overlapping((*backend.span_of(array), i) for i, array in enumerate(adopted))
    if found is not None:
        first, second = sorted(found)
        same = backend.span_of(adopted[first]) == backend.span_of(adopted[second])
        raise ArrayError(
            f"parameters {names[first]!r} and {names[second]!r} "
            + ("are the same memory; give it once" if same else "overlap in memory; give it once")
        )
    return adopted


def check_written(definition: Definition, plan: TensorPlan) -> None:
    """Raise ArrayError if the tensor's parameter or a state of it can't be written as it could when it was
    made: it has been made read-only, or given another shape."""
    check_parameter(plan)
    check_states(definition, plan)


def check_states(definition: Definition, plan: TensorPlan) -> None:
    """``check_written`` of the states alone."""
    for state, array in zip(definition.array_states, plan.states, strict=True):
        if array is not None:
            copied = state in definition.copies
            what = f"the copy of {plan.name!r}" if copied else f"state {state!r} of {plan.name!r}"
            _check_as_made(array, plan.shape, what)


def check_parameter(plan: TensorPlan) -> None:
    """``check_written`` of the parameter alone."""
    _check_as_made(plan.param, plan.shape, f"parameter {plan.name!r}")


def _check_as_made(array: Array, shape: tuple[int, ...], what: str) -> None:
    writable(array, what)
    found = tuple(array.shape)
    if found != shape:
        raise ArrayError(
            f"{what} had the shape {shape} when the optimizer was made, and has {found} now; nothing was "
            f"changed (array.shape = {shape} undoes it; array.reshape makes views of other shapes)"
        )


def make_tensors(
    definition: Definition,
    backend: Backend,
    names: Sequence[str],
    arrays: Sequence[Array],
    groups: Sequence[Group],
    blocks: Sequence[int],
) -> tuple[Tensor, ...]:
    """Allocate the states of parameters that were checked, and what kernels carry from pass to pass.
    ``blocks`` says into how many each falls."""
    kernels = backend.table == "kernel"
    position = {name: i for i, name in enumerate(names)}
    tensors: list[Tensor | None] = [None] * len(names)
    for g, group in enumerate(groups):
        active = definition.active_state(**group.options)
        initial = definition.initial_state(**group.effective(), **group.options)
        for name in group.names:
            param = arrays[position[name]]
            states = tuple(
                backend.allocate(param, initial[state], definition.copies.get(state))
                if state in active
                else None
                for state in definition.array_states
            )
            carried = tuple(backend.allocate(param, 0.0) for _ in definition.carried) if kernels else ()
            place = position[name]
            plan = TensorPlan(name, param, tuple(param.shape), states, carried, blocks[place])
            tensors[place] = Tensor(plan, backend.dtype_of(param), g)
    return tuple(tensor for tensor in tensors if tensor is not None)


def line_states_of(definition: Definition, tensors: Sequence[Tensor]) -> LineStates:
    """Where the states of lines lie in the tables of these tensors."""
    plans = [tensor.plan for tensor in tensors]
    return LineStates(definition, [plan.shape for plan in plans], [plan.blocks for plan in plans])


def make_workspace(
    definition: Definition, backend: Backend, tensors: Sequence[Tensor], groups: Sequence[Group]
) -> Workspace | None:
    """The workspace of a staged rule, with the scalar and shared states as they begin; None for other rules.

    A shared state begins as the group says that has the first tensor of all those for which it exists.
    Raises ArrayError where one workspace can't serve all parameters.
    """
    if not definition.is_staged:
        return None
    workspace = backend.workspace(
        definition, [tensor.plan.param for tensor in tensors], [tensor.plan.blocks for tensor in tensors]
    )
    states = np.zeros((len(tensors), len(definition.device_states)))
    shared = np.zeros(len(definition.shared_states))
    initial = [definition.initial_state(**group.effective(), **group.options) for group in groups]
    for i, tensor in enumerate(tensors):
        states[i] = [initial[tensor.group][name] for name in definition.device_states]
    in_order = dict.fromkeys([*(tensor.group for tensor in tensors), *range(len(groups))])
    for column, name in enumerate(definition.shared_states):
        for g in in_order:
            if name in definition.active_state(**groups[g].options):
                shared[column] = initial[g][name]
                break
    workspace.write(states, shared)
    if definition.has_lines:
        lines = line_states_of(definition, tensors)
        tables = lines.empty()
        for name in lines:
            for i, tensor in enumerate(tensors):
                lines.put(tables, name, i, initial[tensor.group][name])
        workspace.write_lines(tables)
    return workspace
