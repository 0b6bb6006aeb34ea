"""Copies of the parameters in a second type, which kernels write with them: ``Wrappers(shadow=...)``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from solvergen.errors import ArrayError, OptimizerError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import converted, gpu_of, writable
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.naming import as_name, listed
from solvergen.runtime.spans import overlapping
from solvergen.runtime.tensors import Tensor

if TYPE_CHECKING:
    from solvergen.runtime.constraining import Constraints


def copies_in(definition: Definition, tensors: Sequence[Tensor]) -> dict[int, Array]:
    """The copies, by the positions of their tensors."""
    columns = [definition.array_states.index(name) for name in definition.copies]
    return {
        i: array
        for i, tensor in enumerate(tensors)
        for array in (tensor.plan.states[column] for column in columns)
        if array is not None
    }


def refresh(backend: Backend, tensors: Sequence[Tensor], copies: Mapping[int, Array]) -> None:
    """Make copies anew from the parameters, as they are now."""
    for i, copy in copies.items():
        host = backend.to_host(tensors[i].plan.param)
        backend.copy_in(copy, converted(host, numpy_dtype(backend.dtype_of(copy))))


class Copier:
    """Makes copies anew from the parameters where they lie, by a rule that leaves these as they are.

    The rule is made ready when it is first wanted: most optimizers never want it.
    """

    def __init__(
        self, cls: type[Any], backend: Backend, tensors: Sequence[Tensor], copies: Mapping[int, Array]
    ) -> None:
        """``cls`` is the optimizer's class; ``copies`` are by position."""
        self._cls = cls
        self._backend = backend
        self._tensors = tensors
        self._copies = copies
        self._made: Constraints | None = None

    def copy(self, members: Sequence[int] | None) -> None:
        """Make the copies of these tensors (None: all) anew."""
        if not self._copies:
            return
        if self._made is None:
            from solvergen.runtime.constraining import Constraints, Unchanged

            chosen = dict.fromkeys(self._copies, Unchanged())
            self._made = Constraints(self._cls, self._backend, self._tensors, chosen, self._copies)
        work = self._made.bound(members, None)
        try:
            if work is not None:
                uninterrupted(work)
        finally:
            self._made.release()


def read_arrays(
    backend: Backend,
    names: Sequence[str],
    present: Mapping[int, Array],
    arrays: Any,
    by_position: bool,
) -> dict[int, Array]:
    """The copies, by position, with ``arrays`` in the place of those that are ``present`` for these names.

    Raises OptimizerError for names without a copy, ArrayError for arrays that can't be one.
    """
    if not present or not isinstance(arrays, Mapping):
        whose = "" if present else " of an optimizer with Wrappers(shadow=...)"
        raise OptimizerError(f"shadows{whose} must be a mapping of names to arrays")
    given = {as_name(key, by_position): array for key, array in arrays.items()}
    positions = {names[i]: i for i in present}
    unknown = [name for name in given if name not in positions]
    if unknown:
        raise OptimizerError(f"there is no copy of {listed(unknown)}; copies are of {listed([*positions])}")
    kept = dict(present)
    for name, array in given.items():
        i = positions[name]
        kept[i] = _adopted(backend, name, present[i], array)
    check_copies(names, kept)
    return kept


def check_copies(names: Sequence[str], copies: Mapping[int, Array]) -> None:
    """Raise ArrayError for a copy that has been made read-only."""
    for i, array in copies.items():
        writable(array, f"the copy of {names[i]!r}")


def in_place(
    definition: Definition, backend: Backend, tensors: Sequence[Tensor], copies: Mapping[int, Array]
) -> tuple[Tensor, ...]:
    """The tensors with these copies in the place of those that they have.

    Raises ArrayError where one shares memory with another or with anything else of the optimizer's.
    """
    columns = {dtype: definition.array_states.index(name) for name, dtype in definition.copies.items()}
    changed = list(tensors)
    for i, array in copies.items():
        states = list(tensors[i].plan.states)
        states[columns[backend.dtype_of(array)]] = array
        changed[i] = replace(tensors[i], plan=replace(tensors[i].plan, states=tuple(states)))
    _check_apart(backend, changed)
    return tuple(changed)


def _check_apart(backend: Backend, tensors: Sequence[Tensor]) -> None:
    found = overlapping(
        (*backend.span_of(array), tensor.plan.name)
        for tensor in tensors
        for array in (tensor.plan.param, *tensor.plan.states)
        if array is not None
    )
    if found is not None:
        raise ArrayError(
            f"the copies of {found[0]!r} and {found[1]!r} share memory with one another, or with a parameter "
            "or a state of these; give each an array of its own"
        )


def _adopted(backend: Backend, name: str, present: Array, array: object) -> Array:
    """A caller's array for the copy of the parameter ``name``, which is ``present`` so far.

    Raises ArrayError if it can't be that.
    """
    try:
        checked = backend.adopt(name, array)
    except ArrayError as error:
        told = str(error).removeprefix(f"parameter {name!r} ")
        raise ArrayError(f"the array for the copy of {name!r} {told}") from None
    found = f"{backend.dtype_of(checked)}{tuple(checked.shape)}"
    expected = f"{backend.dtype_of(present)}{tuple(present.shape)}"
    if found != expected:
        raise ArrayError(f"the copy of {name!r} is {found}; it must be {expected}")
    if gpu_of(checked) != gpu_of(present):
        raise ArrayError(f"the copy of {name!r} is on another GPU than its parameter")
    return checked
