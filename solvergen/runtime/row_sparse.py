"""Gradients that are zero but for some rows: only these rows are updated, and their states.

The rows are gathered into arrays of their own, updated there like any tensor, and scattered back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from solvergen.errors import ArrayError, OptimizerError
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import Backend, TensorPlan
from solvergen.runtime.buffers import gradient_dtypes
from solvergen.runtime.definition import Definition
from solvergen.runtime.groups import Group
from solvergen.runtime.tensors import Tensor, check_written


@dataclass(frozen=True, eq=False)
class RowSparse:
    """The gradient of a parameter of which only some rows (along the first axis) have one.

    ``indices``: an array of k whole numbers, the rows; one may occur several times, and what is said of
    it is summed, in the order in which it comes. ``rows``: of the shape (k, ...), what the gradient is there.
    Both are NumPy's. Of a parameter on a GPU ``rows`` lies there, too, and ``indices`` there or in a NumPy
    array.
    """

    indices: Any
    rows: Any


class ByRows(Exception):
    """Some gradients are given by rows."""


class _Gathered(NamedTuple):
    """A tensor's rows, as a tensor; the sums of its gradients; and what takes the result back."""

    tensor: Tensor
    gradient: Array
    scatter: Callable[[], None]


def check_rule(class_name: str, definition: Definition, options: dict[str, bool]) -> None:
    """Raise OptimizerError unless the rule, under these options, is of each element by itself."""
    title = class_name.removeprefix("Wrapped")
    if definition.evaluations:
        raise OptimizerError(f"{title} evaluates the gradient again in a step: it takes no gradients by rows")
    for name, what in (("wrap_accumulate", "accumulate"), ("wrap_write_update", "write_update")):
        if options.get(name, False):
            raise OptimizerError(f"gradients by rows don't go with the wrappers' {what}")
    if definition.is_staged:
        active = definition.active_state(**options)
        passes = definition.active_passes(**options)
        beside = {*definition.device_states, *definition.shared_states}.intersection(active)
        if beside or definition.active_stages(**options) or any(definition.passes[n].kinds for n in passes):
            raise OptimizerError(
                f"{title}, as it was made, looks at all elements of a tensor together: it takes no gradients "
                "by rows"
            )


def gathered(
    backend: Backend,
    definition: Definition,
    groups: Sequence[Group],
    tensors: Sequence[Tensor],
    gradients: Sequence[object],
) -> tuple[list[Tensor], list[object], Callable[[], None]]:
    """These tensors and gradients with rows in the place of those whose gradients are given by rows, and what
    takes the updated rows back. Raises ArrayError, OptimizerError."""
    tensors, gradients, parts = list(tensors), list(gradients), []
    for i, gradient in enumerate(gradients):
        if isinstance(gradient, RowSparse):
            part = _gathered(backend, definition, groups[tensors[i].group], tensors[i], gradient)
            tensors[i], gradients[i] = part.tensor, part.gradient
            parts.append(part)

    def scatter() -> None:
        for part in parts:
            part.scatter()

    return tensors, gradients, scatter


def _gathered(
    backend: Backend, definition: Definition, group: Group, tensor: Tensor, given: RowSparse
) -> _Gathered:
    """The rows that ``given`` speaks of, taken out of ``tensor``. Raises ArrayError, OptimizerError."""
    check_rule(definition.class_name, definition, dict(group.options))
    plan = tensor.plan
    check_written(definition, plan)
    indices, rows = _checked(backend, given, plan, tensor.dtype)
    places, which = np.unique(indices, return_inverse=True)
    work = backend.rows(plan.param)
    total = work.summed(rows, which.reshape(-1), len(places))
    own = work.taken(plan.param, places)
    states: list[Array | None] = []
    back: list[tuple[Array, Array]] = [(plan.param, own)]
    for state in plan.states:
        if state is None:
            states.append(None)
            continue
        part = work.taken(state, places, backend.allocate(own, 0.0, backend.dtype_of(state)))
        states.append(part)
        back.append((state, part))

    def scatter() -> None:
        for whole, part in back:
            work.put(whole, places, part)

    taken = TensorPlan(plan.name, own, tuple(own.shape), tuple(states))
    return _Gathered(Tensor(taken, tensor.dtype, tensor.group), total, scatter)


def _checked(backend: Backend, given: RowSparse, plan: TensorPlan, dtype: str) -> tuple[HostArray, Array]:
    what = f"the gradient of {plan.name!r}"
    indices, rows = backend.read_rows(what, plan.param, given.indices, given.rows)
    if not plan.shape:
        raise ArrayError(f"{what} is given by rows, but the parameter is a single number")
    if indices.ndim != 1 or indices.dtype.kind not in "iu":
        raise ArrayError(
            f"{what} has indices of dtype {indices.dtype} and shape {indices.shape}; they must be whole "
            "numbers, in one dimension"
        )
    expected = (len(indices), *plan.shape[1:])
    if rows.shape != expected:
        raise ArrayError(f"{what} has rows of shape {rows.shape}; for these indices it must be {expected}")
    allowed = gradient_dtypes(dtype)
    if rows.dtype.name not in allowed or not rows.dtype.isnative:
        raise ArrayError(
            f"{what} has rows of dtype {rows.dtype}; for a {dtype} parameter it must be "
            f"{' or '.join(allowed)}"
        )
    if indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < plan.shape[0]:
        raise ArrayError(
            f"{what} has indices from {indices.min()} to {indices.max()}; the parameter's rows are 0 to "
            f"{plan.shape[0] - 1}"
        )
    return indices, rows


def has_rows(gradients: Sequence[object]) -> bool:
    """Whether any of these gradients is given by rows."""
    return any(isinstance(gradient, RowSparse) for gradient in gradients)
