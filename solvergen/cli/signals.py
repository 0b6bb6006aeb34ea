"""What signals do to a command: it stops, and leaves nothing behind."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


def end_in_order() -> None:
    """Let SIGTERM and SIGHUP end the process as an exception does, with exit code 128 + number.

    So temporary folders are removed. Signals that were ignored when the process began (``nohup``) stay so.
    """
    for number in _ENDING:
        if number != signal.SIGINT and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)  # the next one doesn't wait for anything
    raise SystemExit(128 + number)


@contextmanager
def held() -> Iterator[Callable[[], None]]:
    """Signals that end the process wait, while the block runs, until it calls what it is given.

    What a handler raises comes out wherever Python happens to be. In a callback of the garbage collector,
    and Hypothesis has one, it is printed and forgotten, and as SystemExit Hypothesis takes it for a failing
    test. A second signal doesn't wait.

    For the main thread. Raises KeyboardInterrupt in the block; out of it, SystemExit for other signals.
    """
    noted: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        if noted:
            signal.signal(number, signal.SIG_DFL)  # should this one be forgotten, the next isn't
            raise KeyboardInterrupt
        noted.append(number)

    def check() -> None:
        if noted:
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _ENDING}
    try:
        for number, handler in before.items():
            if handler is not signal.SIG_IGN and handler is not None:
                signal.signal(number, note)
        yield check
        check()
    except KeyboardInterrupt:
        if noted and noted[0] != signal.SIGINT:
            raise SystemExit(128 + noted[0]) from None
        raise
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: set by another language's code
                signal.signal(number, handler)
