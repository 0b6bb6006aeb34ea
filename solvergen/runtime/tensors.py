"""The tensors of an optimizer: checked parameters and their state arrays, by position and by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvergen.errors import ArrayError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend, TensorPlan
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group


@dataclass(frozen=True, eq=False)
class Tensor:
    """One parameter. ``plan`` has its arrays, ``dtype`` names its storage type, ``group`` is a position."""

    plan: TensorPlan
    dtype: str
    group: int


def adopt_all(backend: Backend, names: Sequence[str], arrays: Sequence[object]) -> list[Array]:
    """Check every parameter, and that none shares memory with another. Raises ArrayError."""
    adopted = [backend.adopt(name, array) for name, array in zip(names, arrays, strict=True)]
    spans = sorted((*backend.span_of(array), i) for i, array in enumerate(adopted))
    last = (0, -1)  # end and position of the one before
    for start, end, i in spans:
        if start == end:
            continue
        if start < last[0]:
            first, second = sorted((last[1], i))
            same = backend.span_of(adopted[first]) == backend.span_of(adopted[second])
            raise ArrayError(
                f"parameters {names[first]!r} and {names[second]!r} "
                + ("are the same memory; give it once" if same else "overlap in memory; give it once")
            )
        last = (end, i)
    return adopted


def make_tensors(
    definition: Definition,
    backend: Backend,
    names: Sequence[str],
    arrays: Sequence[Array],
    groups: Sequence[Group],
) -> tuple[Tensor, ...]:
    """Allocate the states of parameters that were checked."""
    position = {name: i for i, name in enumerate(names)}
    tensors: list[Tensor | None] = [None] * len(names)
    for g, group in enumerate(groups):
        active = definition.active_state(**group.options)
        initial = definition.initial_state(**group.effective(), **group.options)
        for name in group.names:
            param = arrays[position[name]]
            states = tuple(
                backend.allocate(param, initial[state]) if state in active else None
                for state in definition.array_states
            )
            plan = TensorPlan(name, param, tuple(param.shape), states)
            tensors[position[name]] = Tensor(plan, backend.dtype_of(param), g)
    return tuple(tensor for tensor in tensors if tensor is not None)
