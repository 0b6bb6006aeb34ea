"""What signals ask of a solver: to stop, to snapshot, nothing.

    with handled(sigint="stop", sighup="snapshot", sigterm="stop") as requested:
        solver.set_action_function(requested)
        solver.solve()

A handler only notes that its signal came. The solver asks between iterations, so nothing is ever
interrupted half done. Nothing is installed unless it is asked for: a library has no business with signals.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from solvergen.errors import SolvergenError
from solvergen.solver.training.events import Action

EFFECTS = {"stop": Action.STOP, "snapshot": Action.SNAPSHOT, "none": Action.NONE}

# In the order in which they are looked at. Windows has no SIGHUP.
_ORDER = ("SIGHUP", "SIGINT", "SIGTERM")

_installed = False


class Requests:
    """The signals that came and what they ask for: an action function."""

    def __init__(self, actions: Mapping[int, Action]) -> None:
        self._actions = actions
        self._noted = dict.fromkeys(actions, False)
        self._stopping = False  # a SIGINT has asked to stop: the next one means it
        self.stopped_by: int | None = None
        """The number of the signal for which a stop was answered."""

    def __call__(self) -> Action:
        """What the first of the signals that came asks for, which is forgotten then."""
        for number, action in self._actions.items():
            if self._noted[number]:
                self._noted[number] = False
                if action is Action.STOP:
                    self.stopped_by = number
                return action
        return Action.NONE

    def note(self, number: int, frame: FrameType | None) -> None:
        """The handler."""
        if number == signal.SIGINT and self._actions[number] is Action.STOP:
            if self._stopping:
                signal.signal(number, signal.SIG_DFL)  # should the exception be swallowed, the next isn't
                raise KeyboardInterrupt
            self._stopping = True
        self._noted[number] = True


class SignalError(SolvergenError):
    """Handlers can't be installed: no such effect, a second time, or not in the main thread."""


@contextmanager
def handled(*, sigint: str = "stop", sighup: str = "snapshot", sigterm: str = "stop") -> Iterator[Requests]:
    """Give signals these effects while the block runs; yields an action function for a solver.

    The function answers for one signal a call, SIGHUP before SIGINT before SIGTERM, and forgets it. A
    second SIGINT whose first asked to stop raises KeyboardInterrupt at once, wherever Python is (files are
    written whole or not at all, so none is harmed), and a third ends the process as signals do. Handlers are
    put back at the end, whatever they were. As in Caffe, signals that were ignored before (``nohup``) are
    handled too.

    Raises:
        SignalError: an effect that isn't one of ``EFFECTS``; handlers that are installed already; or called
            in another thread than the main one, where Python doesn't let signals be handled.
    """
    actions = {
        name: _action(name, effect)
        for name, effect in {"SIGHUP": sighup, "SIGINT": sigint, "SIGTERM": sigterm}.items()
    }
    if threading.current_thread() is not threading.main_thread():
        raise SignalError("signals can be handled in the main thread alone: train there, or without handlers")
    global _installed
    if _installed:
        raise SignalError("signals are handled already: two solvers can't both be told to stop")
    numbers = {name: getattr(signal, name) for name in _ORDER if hasattr(signal, name)}
    requests = Requests({number: actions[name] for name, number in numbers.items()})
    before = {number: signal.getsignal(number) for number in numbers.values()}
    _installed = True
    try:
        for number in before:
            signal.signal(number, requests.note)
        yield requests
    finally:
        _installed = False
        for number, handler in before.items():
            # None: set by another language's code, which Python can't put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _action(name: str, effect: str) -> Action:
    try:
        return EFFECTS[effect]
    except KeyError:
        raise SignalError(
            f"{name.lower()}_effect {effect!r}: a signal's effect is {', '.join(EFFECTS)}"
        ) from None
