"""The backend that always works: the generated NumPy reference, run over host arrays.

Rules are elementwise, so large tensors are updated in blocks that stay in the cache: the same bits,
and temporaries of a few hundred kilobytes whatever the tensors' sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan, TensorPlan
from solvergen.runtime.buffers import ARRAY_TYPES, HostArrays, address_of, may_be_written
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype, rounding

BLOCK = 1 << 14
"""Elements updated at a time."""


class NumpyBackend(HostArrays):
    """Runs ``definition.update`` on NumPy arrays."""

    name = "numpy"
    table: Literal["kernel", "reference"] = "reference"

    def prepare(self, plan: LaunchPlan) -> NumpyLauncher:
        """Nothing is compiled; views of the tensors are made once."""
        return NumpyLauncher(plan)


class NumpyLauncher:
    """The tensors of a plan, as flat views."""

    def __init__(self, plan: LaunchPlan) -> None:
        definition = plan.definition
        self._update = definition.update
        self._plan = plan
        self._grad_dtype = numpy_dtype(plan.grad_dtype)
        self._shapes = [tensor.shape for tensor in plan.tensors]
        self._tensors = [_flat(tensor) for tensor in plan.tensors]
        self._gradients: list[HostArray] = []
        compute = compute_dtype(plan.param_dtype)
        options = [plan.options[name] for name in definition.option_names]
        self._tail = (*options, compute.type, rounding(plan.param_dtype))
        self._compute = compute
        active = definition.active_state(**plan.options)
        # Columns of the table that hold scalar states which don't exist: the reference gets None.
        self._absent = tuple(i for i, name in enumerate(definition.scalar_states) if name not in active)
        self._owned = plan.owned

    def bind(self, gradients: Sequence[object]) -> bool:
        """Remember the gradients if each is just what the plan expects."""
        if len(gradients) != len(self._shapes) or not may_be_written(self._plan):
            return False
        bound: list[HostArray] = []
        for shape, gradient in zip(self._shapes, gradients, strict=True):
            if not (
                isinstance(gradient, np.ndarray)
                and type(gradient) in ARRAY_TYPES
                and gradient.dtype == self._grad_dtype
                and gradient.shape == shape
                and gradient.flags.c_contiguous
            ):
                return False
            start = address_of(gradient)
            if gradient.size and (
                start % gradient.itemsize or self._owned.met_by(start, start + gradient.nbytes) is not None
            ):
                return False
            bound.append(gradient.view(np.ndarray).reshape(-1))
        self._gradients = bound
        return True

    def finite(self) -> bool:
        """Whether all bound gradients are finite."""
        with np.errstate(all="ignore"):  # ml_dtypes warns of some NaNs
            return all(
                bool(np.isfinite(gradient[i : i + BLOCK]).all())
                for gradient in self._gradients
                for i in range(0, gradient.size, BLOCK)
            )

    def launch(self, table: HostArray, rows: HostArray) -> None:
        """Update tensor after tensor; a row holds scalar states, hyperparameters and ``t``."""
        values: list[list[Any]] = table.tolist()
        for row in values:
            for column in self._absent:
                row[column] = None
        with np.errstate(all="ignore"):
            for (param, states), gradient, row in zip(
                self._tensors, self._gradients, rows.tolist(), strict=True
            ):
                scalars = values[row]
                for i in range(0, param.size, BLOCK):
                    block = slice(i, i + BLOCK)
                    self._update_block(
                        param[block],
                        gradient[block],
                        [None if state is None else state[block] for state in states],
                        scalars,
                    )

    def _update_block(
        self, param: HostArray, gradient: HostArray, states: list[HostArray | None], scalars: list[Any]
    ) -> None:
        compute = self._compute
        values: list[Any] = [param.astype(compute, copy=False), gradient.astype(compute, copy=False), *states]
        results = self._update(*values, *scalars, *self._tail)
        targets = [param, *states]
        # A rule may hand on one buffer as another's new value: such a result is copied before the
        # buffer that it still is gets overwritten.
        live = {id(value) for value in values}
        pending: list[tuple[HostArray, Any]] = []
        for target, result in zip(targets, results, strict=False):
            if target is None or result is target:
                continue
            if getattr(result, "dtype", None) != compute:
                raise CompilerBug(f"the NumPy reference returned {result!r:.80} where {compute} was due")
            pending.append((target, result.copy() if id(result) in live else result))
        for target, result in pending:
            target[...] = result

    def release(self) -> None:
        """Forget the gradients."""
        self._gradients = []


def _flat(tensor: TensorPlan) -> tuple[HostArray, list[HostArray | None]]:
    states = [None if state is None else state.reshape(-1) for state in tensor.states]
    return tensor.param.view(np.ndarray).reshape(-1), states
