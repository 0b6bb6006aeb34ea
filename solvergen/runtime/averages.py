"""The exponential averages of the parameters, and how they change places with these."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from solvergen.errors import OptimizerError
from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import writable
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.groups import Group
from solvergen.runtime.tensors import Tensor


def average_column(definition: Definition, groups: Sequence[Group]) -> int:
    """Where in the tensors' states the averages are. Raises OptimizerError where none are kept."""
    if not groups[0].options["wrap_keep_average"]:
        raise OptimizerError("this optimizer keeps no average; make one with Wrappers(average=...)")
    return definition.array_states.index("wrap_average")


class Exchange:
    """Puts the averages, rounded to their type, in the place of the parameters, and everything back to the
    bit."""

    def __init__(self, backend: Backend, tensors: Sequence[Tensor], column: int) -> None:
        self._backend = backend
        self._tensors = tensors
        self._column = column
        self._back: list[Callable[[], None]] = []

    def make(self) -> None:
        """Make the parameters their averages. Raises ArrayError, with nothing changed, for a parameter that
        has been made read-only; where something else is raised, ``undo`` is due."""
        for tensor in self._tensors:
            writable(tensor.plan.param, f"parameter {tensor.plan.name!r}")
        with np.errstate(all="ignore"):
            for tensor in self._tensors:
                average = tensor.plan.states[self._column]
                assert average is not None
                self._back.append(_exchange(self._backend, tensor.plan.param, average, tensor.dtype))

    def undo(self) -> None:
        """Make the parameters what they were, however far ``make`` came."""
        while self._back:
            self._back.pop()()


def _exchange(backend: Backend, param: Array, average: Array, dtype: str) -> Callable[[], None]:
    """Put ``average`` in the place of ``param``, which is of ``dtype``. Returns what puts everything back."""
    if backend.dtype_of(average) == dtype:

        def swap() -> None:
            kept = param.copy()
            param[...] = average
            average[...] = kept

        swap()
        return swap
    kept = backend.to_host(param)
    backend.copy_in(param, backend.to_host(average).astype(numpy_dtype(dtype)))
    return lambda: backend.copy_in(param, kept)
