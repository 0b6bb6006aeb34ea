"""The backend that always works: the generated NumPy reference, run over host arrays.

Most rules are elementwise, so large tensors are updated in blocks that stay in the cache: the same bits,
and temporaries of a few hundred kilobytes whatever the tensors' sizes. Staged rules get whole tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.backends.numpy_staged import NumpyWorkspace, StagedNumpyLauncher
from solvergen.runtime.backends.numpy_tensors import NumpyTensors
from solvergen.runtime.buffers import HostArrays
from solvergen.runtime.definition import Definition

BLOCK = 1 << 14
"""Elements updated at a time."""


class NumpyBackend(HostArrays):
    """Runs ``definition.update`` on NumPy arrays."""

    name = "numpy"
    table: Literal["kernel", "reference"] = "reference"

    def workspace(
        self, definition: Definition, params: Sequence[HostArray], blocks: Sequence[int] | None = None
    ) -> NumpyWorkspace:
        """A workspace that runs references, not kernels."""
        shapes = [param.shape for param in params]
        return NumpyWorkspace(definition, [param.size for param in params], shapes, blocks)

    def prepare(self, plan: LaunchPlan) -> NumpyLauncher | StagedNumpyLauncher:
        """Nothing is compiled; views of the tensors are made once."""
        return StagedNumpyLauncher(plan) if plan.definition.is_staged else NumpyLauncher(plan)


class NumpyLauncher(NumpyTensors):
    """Updates the tensors of a plan, one after the other, in blocks."""

    def __init__(self, plan: LaunchPlan) -> None:
        super().__init__(plan)
        definition = plan.definition
        self._update = definition.update
        active = definition.active_state(**plan.options)
        # Columns of the table that hold scalar states which don't exist: the reference gets None.
        self._absent = tuple(i for i, name in enumerate(definition.scalar_states) if name not in active)

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
        for target, result in self._to_store(values, param, gradient, states, results):
            target[...] = result
