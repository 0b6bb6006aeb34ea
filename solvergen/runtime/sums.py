"""Calls that only sum gradients up: a small rule of its own, run over the sums."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from solvergen.runtime.arrays import Array
from solvergen.runtime.backends.base import Backend, Skip, TensorPlan
from solvergen.runtime.cohorts import Cohort, Cohorts
from solvergen.runtime.definition import Definition
from solvergen.runtime.interrupts import NothingDone
from solvergen.runtime.plan import AnyLaunchSet, Launches
from solvergen.runtime.settling import Unsettled
from solvergen.runtime.tensors import Tensor


class Sums:
    """What adds gradients to ``sums``, one for each of ``tensors``, whatever else these remember.

    ``column`` is that of the scalar state that counts a cohort's calls since its last update. ``cohorts`` is
    one that is never counted: the rule that adds has no scalars. ``calls`` is how many the update has that is
    under way.
    """

    def __init__(
        self,
        definition: Definition,
        backend: Backend,
        tensors: Sequence[Tensor],
        sums: Sequence[Array | None],
        column: int,
    ) -> None:
        self.calls = 0
        self.cohorts = Cohorts([Cohort(0, 0, (), range(len(tensors)))], len(tensors))
        self._column = column
        added = [
            Tensor(TensorPlan(tensor.plan.name, total, tensor.plan.shape, ()), backend.dtype_of(total), 0)
            for tensor, total in zip(tensors, sums, strict=True)
            if total is not None
        ]
        self.launches = Launches(definition, backend, added, [{}], owners=tensors)

    def pending(self, cohorts: Iterable[Cohort]) -> int:
        """How many calls have been summed up in these cohorts."""
        return int(max(cohort.scalars[self._column] for cohort in cohorts))

    def take_part(self, cohort: Cohort) -> bool:
        """Whether a call that was summed up had a gradient for the tensors of this cohort."""
        return cohort.scalars[self._column] != 0.0

    def scalars_of(self, cohort: Cohort) -> tuple[float, ...]:
        """The scalar states that an update begins with: all its tensors have as many calls."""
        return self._counted(cohort, self.calls)

    def launch(
        self,
        bound: AnyLaunchSet,
        cohorts: Sequence[Cohort],
        calls: int,
        skip: Skip | None,
        unsettled: Unsettled,
    ) -> None:
        """Add the gradients that are bound, and count them in these cohorts as the last of ``calls``.
        ``skip`` may leave it out. Whatever is raised, nothing is counted then."""
        before = [(cohort, cohort.scalars) for cohort in cohorts]

        def undo() -> None:
            for cohort, scalars in before:
                cohort.scalars = scalars

        try:
            if skip is not None:
                bound.unless(skip)
            for cohort in cohorts:
                cohort.scalars = self._counted(cohort, calls)
            bound.launch()
        except (Exception, SystemExit, NothingDone):  # as in a step
            undo()
            raise
        if skip is not None:
            unsettled.keep(skip, undo, bound)

    def _counted(self, cohort: Cohort, calls: int) -> tuple[float, ...]:
        scalars = cohort.scalars
        return (*scalars[: self._column], float(calls), *scalars[self._column + 1 :])
