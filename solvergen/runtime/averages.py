"""The exponential averages of the parameters, and how they change places with these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from solvergen.errors import OptimizerError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import gpu_of, writable
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.groups import Group
from solvergen.runtime.tensors import Tensor, check_parameter

_PIECE = 2**18
"""How many elements change places at a time."""


def average_column(definition: Definition, groups: Sequence[Group]) -> int:
    """Where in the tensors' states the averages are. Raises OptimizerError where none are kept."""
    if not groups[0].options["wrap_keep_average"]:
        raise OptimizerError("this optimizer keeps no average; make one with Wrappers(average=...)")
    return definition.array_states.index("wrap_average")


class Exchange:
    """Puts the averages, rounded to the parameters' types, in the place of the parameters, and everything
    back to the bit.

    It writes through views that it makes first, and what puts things back allocates no arrays: that a
    program makes one read-only meanwhile, or runs out of memory, leaves nothing behind.
    """

    def __init__(self, backend: Backend, tensors: Sequence[Tensor], column: int) -> None:
        self._backend = backend
        pairs = [(tensor, _present(tensor.plan.states[column])) for tensor in tensors]
        self._swapping = [pair for pair in pairs if backend.dtype_of(pair[1]) == pair[0].dtype]
        self._narrow = [pair for pair in pairs if backend.dtype_of(pair[1]) != pair[0].dtype]
        self._swaps: list[Callable[[], None]] = []
        self._swapped = 0
        self._back: list[Callable[[], None]] = []

    def make(self) -> None:
        """Make the parameters their averages. Raises ArrayError, with nothing changed, for an array that it
        would write and that has been made read-only; where something else is raised, ``undo`` is due."""
        for tensor, _ in (*self._swapping, *self._narrow):
            check_parameter(tensor.plan)
        for tensor, average in self._swapping:
            writable(average, f"the average of {tensor.plan.name!r}")
        self._swaps = _swaps([(tensor.plan.param, average) for tensor, average in self._swapping])
        for swap in self._swaps:
            swap()
            self._swapped += 1
        for tensor, average in self._narrow:
            param = tensor.plan.param.view()
            with np.errstate(all="ignore"):
                rounded = self._backend.to_host(average).astype(numpy_dtype(tensor.dtype))
            self._back.append(partial(self._backend.copy_in, param, self._backend.to_host(param)))
            self._backend.copy_in(param, rounded)

    def undo(self) -> None:
        """Make the parameters what they were, however far ``make`` came. One that fails stops none of the
        others; the first error is raised in the end."""
        problems: list[Exception] = []
        for put_back in (*self._back, *self._swaps[: self._swapped]):
            try:
                put_back()
            except Exception as problem:
                problems.append(problem)
        self._swapped = 0
        self._back.clear()
        if problems:
            raise problems[0]


def _present(average: Array | None) -> Array:
    """The average, which every tensor has."""
    assert average is not None
    return average


def _swaps(pairs: Sequence[tuple[Array, Array]]) -> list[Callable[[], None]]:
    """What exchanges the arrays of each pair, piece by piece; called again, it puts its piece back."""
    buffers = _buffers([one for one, _ in pairs])
    swaps: list[Callable[[], None]] = []
    for one, other in pairs:
        flat, other_flat, buffer = one.reshape(-1), other.reshape(-1), buffers[_kind(one)]
        for start in range(0, one.size, _PIECE):
            piece = slice(start, start + _PIECE)
            mine = flat[piece]
            swaps.append(partial(_swap, mine, other_flat[piece], buffer[: mine.size]))
    return swaps


def _kind(array: Array) -> tuple[str, int | None]:
    """Arrays of one kind can share a buffer: their type, and the GPU that they lie on."""
    return array.dtype.name, gpu_of(array)


def _buffers(arrays: Sequence[Array]) -> dict[tuple[str, int | None], Array]:
    """An array for each kind, which holds a piece of any that is of it."""
    largest: dict[tuple[str, int | None], Array] = {}
    for array in sorted(arrays, key=lambda one: int(one.size)):
        largest[_kind(array)] = array
    return {kind: array.reshape(-1)[:_PIECE].copy() for kind, array in largest.items()}


def _swap(one: Array, other: Array, buffer: Array) -> None:
    """Exchange the elements of two arrays. Where that fails, both are as before."""
    buffer[...] = one
    try:
        one[...] = other
    except BaseException:
        one[...] = buffer
        raise
    try:
        other[...] = buffer
    except BaseException:
        other[...] = one
        one[...] = buffer
        raise
