"""Who takes part in a training: callbacks, listeners, and the function that says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from solvergen.solver.training import events
from solvergen.solver.training.error import TrainingError
from solvergen.solver.training.events import Action, Event, Listener

if TYPE_CHECKING:
    from solvergen.solver.training.solver import Solver

Callback = Callable[["Solver"], object]
Listeners = Listener | Callable[[Event], None]

_HOOKS = ("start", "gradients_ready", "update", "display", "test", "snapshot")


class Participants:
    """All who take part. ``listeners`` get every event; nothing need be made for them if there are none.

    ``action_function`` is asked what to do where a training can stop; ``stop_asked`` goes before it, once.
    """

    def __init__(self, log: Any) -> None:
        self.listeners: list[Listeners] = _listeners(log)
        self.action_function: Callable[[], Action] | None = None
        self.stop_asked = False
        self._hooks: dict[str, list[Callback]] = {name: [] for name in _HOOKS}

    def hook(self, name: str, callback: Callback) -> Callback:
        """Have ``callback`` called at this place."""
        self._hooks[name].append(callback)
        return callback

    def call(self, name: str, solver: Solver) -> None:
        """Call the callbacks of this place."""
        for callback in self._hooks[name]:
            callback(solver)

    def say(self, event: Event) -> None:
        """Tell all listeners."""
        if self.listeners:
            events.announce(self.listeners, event)

    def requested(self) -> Action:
        """What is to be done. Raises TrainingError if the function says nothing of the kind."""
        if self.stop_asked:
            self.stop_asked = False
            return Action.STOP
        if self.action_function is None:
            return Action.NONE
        action = self.action_function()
        if not isinstance(action, Action):
            raise TrainingError(f"the action function must return an Action, and returned {action!r}")
        return action


def _listeners(log: Any) -> list[Listeners]:
    if log is None:
        return []
    if hasattr(log, "handle") or callable(log):
        return [log]
    if not isinstance(log, Iterable):
        raise TrainingError(f"log must be a listener or several (with handle, or functions), not {log!r}")
    return list(log)
