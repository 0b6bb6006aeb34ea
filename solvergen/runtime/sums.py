"""Calls that only sum gradients up: a small rule of its own, run over the sums."""

from __future__ import annotations

from collections.abc import Sequence

from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend, TensorPlan
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.definition import Definition
from solvergen.runtime.plan import Launches
from solvergen.runtime.tensors import Tensor


class Sums:
    """What adds gradients to ``sums``, one for each of ``tensors``, whatever else these remember.

    ``cohorts`` is one that is never counted: the rule has no scalars.
    """

    def __init__(
        self,
        definition: Definition,
        backend: Backend,
        tensors: Sequence[Tensor],
        sums: Sequence[Array | None],
    ) -> None:
        self.cohorts = Cohorts([Cohort(0, 0, (), range(len(tensors)))], len(tensors))
        added = [
            Tensor(TensorPlan(tensor.plan.name, total, tensor.plan.shape, ()), backend.dtype_of(total), 0)
            for tensor, total in zip(tensors, sums, strict=True)
            if total is not None
        ]
        self.launches = Launches(definition, backend, added, [{}], owners=tensors)
