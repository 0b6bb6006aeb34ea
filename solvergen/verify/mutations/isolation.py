"""Runs each trial in a process of its own, a fork of this one: a mutant may crash, hang or write anywhere."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from solvergen.errors import CompilerBug

T = TypeVar("T")

_AT, _DONE, _FAILED = "at", "done", "failed"
_PR_SET_PDEATHSIG = 1

Beat = Callable[[str], None]
"""Tells the parent that a trial is alive, and at what."""


def each_isolated(
    work: Callable[[T, Beat], Any], items: Sequence[T], *, jobs: int, patience: float
) -> Iterator[tuple[T, Any, str]]:
    """``work(item, beat)`` for every item, ``jobs`` at once: the item, its result as JSON has it, and "".

    A trial that crashes, or shows no life for ``patience`` seconds, has the result None and the reason in
    words, after what it was at. Results come in the order in which they are ready. The calling process must
    have one thread. Raises CompilerBug with the traceback of ``work`` where that raises.
    """
    waiting = list(reversed(items))
    running: dict[int, _Trial[T]] = {}
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    trial = _Trial(work, waiting.pop())
                    running[trial.pipe] = trial
                    selector.register(trial.pipe, selectors.EVENT_READ)
                for key, _ in selector.select(timeout=0.5):
                    running[key.fd].read()
                for trial in list(running.values()):
                    if time.monotonic() - trial.alive > patience:
                        trial.kill()
                    if trial.closed:
                        selector.unregister(trial.pipe)
                        del running[trial.pipe]
                        yield trial.item, *trial.result()
        finally:
            for trial in running.values():
                trial.kill()
                trial.result()


class _Trial(Generic[T]):
    """One item being worked on. Its pipe carries a line for each sign of life, and then the result."""

    def __init__(self, work: Callable[[T, Beat], Any], item: T) -> None:
        self.item = item
        self.alive = time.monotonic()
        self.closed = False
        self._killed = False
        self._said = b""
        self.pipe, writing = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            _child(work, item, writing)
        os.close(writing)
        with contextlib.suppress(OSError):  # so that it can be ended before it gets there itself
            os.setpgid(self._process, self._process)

    def read(self) -> None:
        """Take what the process has written."""
        piece = os.read(self.pipe, 1 << 16)
        self.alive = time.monotonic()
        self._said += piece
        self.closed = not piece

    def kill(self) -> None:
        """End the process, and the compilers that it started."""
        self._killed = self.closed = True
        os.killpg(self._process, signal.SIGKILL)

    def result(self) -> tuple[Any, str]:
        """The result and "", or None and the reason why there is none. Raises CompilerBug if the trial itself
        failed, which says nothing about its item."""
        os.close(self.pipe)
        _, status = os.waitpid(self._process, 0)
        lines = self._said.decode().splitlines()
        kind, at = json.loads(lines[-1]) if lines else (_AT, "")
        before = f"{at}: " if kind == _AT and at else ""
        if self._killed:
            return None, f"{before}never ends"
        if kind == _FAILED:
            raise CompilerBug(f"a trial of {self.item} failed:\n{at}")
        if os.WIFSIGNALED(status):
            return None, f"{before}crashes ({signal.Signals(os.WTERMSIG(status)).name})"
        if kind != _DONE:
            return None, f"{before}ends the process (status {os.waitstatus_to_exitcode(status)})"
        return at, ""


def _child(work: Callable[[T, Beat], Any], item: T, pipe: int) -> None:
    """The process of a trial. Doesn't return."""
    status = 1
    try:
        os.setpgid(0, 0)
        _end_with_parent()
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 2)  # sanitizers and allocators say what a mutant broke
        _say(pipe, _DONE, work(item, lambda at: _say(pipe, _AT, at)))
        status = 0
    except Exception:
        _say(pipe, _FAILED, traceback.format_exc())
    finally:
        os._exit(status)


def _end_with_parent() -> None:
    """Nothing is left behind by a parent that is killed, where the system can see to that."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _say(pipe: int, kind: str, what: Any) -> None:
    line = json.dumps([kind, what]).encode() + b"\n"
    while line:
        line = line[os.write(pipe, line) :]
