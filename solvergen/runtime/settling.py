"""Steps of which only a GPU knows yet whether a flag has left them out.

The host counts such a step as made and goes on. What takes the counting back is kept here until the flag is
looked at: when the next step begins, or when somebody asks for counts or scalar states.
"""

from __future__ import annotations

from collections.abc import Callable

from solvergen.runtime.backends.base import Skip
from solvergen.runtime.interrupts import uninterrupted
from solvergen.runtime.plan import AnyLaunchSet


class Unsettled:
    """The ``last`` step, if it isn't known whether it was left out; None if all is known."""

    __slots__ = ("last",)

    def __init__(self) -> None:
        self.last: tuple[Skip, Callable[[], None], AnyLaunchSet] | None = None

    def keep(self, skip: Skip, undo: Callable[[], None], bound: AnyLaunchSet) -> None:
        """``skip`` may have left out the step that was just launched; ``undo`` takes back its counts then."""
        self.last = skip, undo, bound

    def settle(self) -> None:
        """Find out, waiting for the GPU, and count accordingly. Nothing to do if all is known."""
        if self.last is None:
            return
        skip, undo, bound = self.last
        left_out = skip.is_set()

        def settle() -> None:
            self.last = None
            if left_out:
                undo()
                bound.take_back()

        uninterrupted(settle)
