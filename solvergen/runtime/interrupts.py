"""Holds signals back while something changes, so that whoever handles them finds it done or not begun."""

from __future__ import annotations

# What `signal` wraps. The wrappers make enums of their arguments, at 8 microseconds instead of 0.6; this runs
# in every step.
import _signal  # type: ignore[import-not-found]
from collections.abc import Callable
from threading import get_ident, main_thread
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_SIGNALS = tuple(sorted(_signal.valid_signals()))

# What handled each signal when it was last looked at, and where in it are functions. To compare sixty
# handlers costs half of what it costs to ask which of them can be called.
_seen: tuple[Any, ...] = ()
_functions: list[int] = []

# What holds signals back at present, in the main thread; None outside of `uninterrupted` and in a window.
# What handles them otherwise, those that have arrived, and the handler meanwhile.
_holding: tuple[dict[int, Any], dict[int, FrameType | None], Any] | None = None


class NothingDone(KeyboardInterrupt):
    """An interrupt in the middle of a launch that has changed nothing: the step counts as not made.

    Any other KeyboardInterrupt comes when a launch has returned, and finds the step done.
    """


def uninterrupted(work: Callable[[], object]) -> None:
    """Call ``work``. Signals that arrive meanwhile are handled, by the handlers that the program has, when
    it is done: Ctrl-C raises the usual KeyboardInterrupt then, a handler of SIGALRM its TimeoutError.

    Python runs handlers in the main thread only: elsewhere there is nothing to hold back. Handlers that
    aren't Python functions are left alone. ``signal.siginterrupt`` is as after ``signal.signal`` again.
    """
    global _seen, _functions, _holding
    if get_ident() != main_thread().ident:
        work()
        return
    handlers = tuple(map(_signal.getsignal, _SIGNALS))
    if handlers != _seen:
        _functions = [i for i, handler in enumerate(handlers) if callable(handler)]
        _seen = handlers
    before: dict[int, Any] = {}
    arrived: dict[int, FrameType | None] = {}

    def hold(number: int, frame: FrameType | None) -> None:
        arrived[number] = frame

    held, outer = (before, arrived, hold), _holding
    try:
        for i in _functions:
            number = _SIGNALS[i]
            before[number] = handlers[i]
            try:
                # Handlers of signals that came just before run in here, and may have set others.
                before[number] = _signal.signal(number, hold)
            except ValueError as problem:
                if problem.__traceback__ is None or problem.__traceback__.tb_next is not None:
                    raise  # by such a handler
                before.clear()  # not the main interpreter: no handler runs here either
                break
        _holding = held if before else None
        work()
    finally:
        _holding = outer
        _let_go(*held)


def interruptible(work: Callable[[], T]) -> T:
    """Call ``work`` from within what ``uninterrupted`` calls, as if it were not: signals that have arrived
    are handled before it, others at once. Afterwards they are held back again.

    Handlers that ``work`` sets stay: they handle what arrives from then on.
    """
    global _holding
    if _holding is None or get_ident() != main_thread().ident:
        return work()
    before, arrived, hold = held = _holding
    _holding = None
    try:
        _let_go(before, arrived, hold)
        return work()
    finally:
        _holding = held
        before.clear()
        _hold_again(before, hold)


def _hold_again(before: dict[int, Any], hold: Any) -> None:
    """Hold all signals back that Python functions handle, though those of some that arrive may raise."""
    try:
        for number in _SIGNALS:
            handler = _signal.getsignal(number)
            if callable(handler) and handler is not hold:
                before[number] = handler
                before[number] = _signal.signal(number, hold)
    except BaseException:
        _hold_again(before, hold)
        raise


def _let_go(before: dict[int, Any], arrived: dict[int, FrameType | None], hold: Any) -> None:
    """Set the handlers again, and handle what has arrived."""
    try:
        for number in before:
            _signal.signal(number, before[number])
    except BaseException:  # by a handler that was set already
        _put_back(before, hold)
        raise
    finally:
        if arrived:
            _handle(arrived, before)


def _put_back(handlers: dict[int, Any], hold: Any) -> None:
    """Set all handlers again that aren't yet, though those that are may raise."""
    try:
        for number in handlers:
            if _signal.getsignal(number) is hold:
                _signal.signal(number, handlers[number])
    except BaseException:
        _put_back(handlers, hold)
        raise


def _handle(arrived: dict[int, FrameType | None], handlers: dict[int, Any]) -> None:
    """Handle all signals that arrived, though some handlers raise."""
    try:
        while arrived:
            number = next(iter(arrived))
            frame = arrived.pop(number)
            if callable(handlers[number]):
                handlers[number](number, frame)
            else:
                _signal.raise_signal(number)
    finally:
        if arrived:
            _handle(arrived, handlers)
