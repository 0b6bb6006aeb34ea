"""How a step that is prepared gets launched, and what is counted with it.

Whatever is raised, counts and scalar states on the host are as before the step then.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from solvergen.runtime.backends.base import Skip
from solvergen.runtime.cohorts import advance
from solvergen.runtime.interrupts import NothingDone
from solvergen.runtime.plan import AnyLaunchSet
from solvergen.runtime.settling import Unsettled

Scalars = Sequence[tuple[float, ...]]
"""The new scalar states of each cohort."""

Finish = Callable[[], None] | None
"""What comes behind the launches."""


def launch(finish: Finish, bound: AnyLaunchSet, scalars: Scalars) -> Callable[[], None]:
    """A step whose gradients are all bound. Returns what takes back what it has counted."""
    undo = advance(bound.cohorts, scalars)
    try:
        bound.launch()
        if finish is not None:
            finish()
    except (Exception, SystemExit, NothingDone):
        # SystemExit is what an observer of the ptx backend may raise. Not every KeyboardInterrupt: one that
        # comes when a launch has returned finds the step done.
        undo()
        raise
    return undo


def launch_unless(
    skip: Skip, unsettled: Unsettled, finish: Finish, bound: AnyLaunchSet, scalars: Scalars
) -> None:
    """A step that ``skip`` may leave out, which a GPU decides."""
    bound.unless(skip)
    unsettled.keep(skip, launch(finish, bound, scalars), bound)


def launch_evaluating(
    evaluate: Callable[[AnyLaunchSet, int], None], finish: Finish, bound: AnyLaunchSet, scalars: Scalars
) -> None:
    """A step with evaluations of the gradient in it, each by ``evaluate``, which is told its number. The
    launches undo what they have done, should one raise."""
    numbers = itertools.count(2)
    bound.launch(lambda: evaluate(bound, next(numbers)))
    if finish is not None:
        finish()
    advance(bound.cohorts, scalars)
