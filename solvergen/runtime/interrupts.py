"""Holds Ctrl-C back while something changes, so that an interrupt finds it done or not begun."""

from __future__ import annotations

# What `signal` wraps. The wrappers make enums of their arguments, at 8 microseconds instead of 0.6; this runs
# in every step.
import _signal  # type: ignore[import-not-found]
from collections.abc import Callable
from signal import SIGINT
from threading import get_ident, main_thread
from types import FrameType


def uninterrupted(work: Callable[[], None]) -> None:
    """Call ``work``. An interrupt (SIGINT) that arrives meanwhile is handled, by the handler that the
    program has, when it is done: so the usual KeyboardInterrupt is raised then.

    Python runs handlers in the main thread only: elsewhere there is nothing to hold back. Handlers that
    aren't Python's are left alone.
    """
    handler = _signal.getsignal(SIGINT) if get_ident() == main_thread().ident else None
    if not callable(handler):
        work()
        return
    held: list[tuple[int, FrameType | None]] = []

    def hold(number: int, frame: FrameType | None) -> None:
        held.append((number, frame))

    try:
        _signal.signal(SIGINT, hold)
    except ValueError:  # not the main interpreter: no handler runs here either
        handler = None
    try:
        work()
    finally:
        if handler is not None:
            _signal.signal(SIGINT, handler)
            if held:
                handler(*held[-1])
