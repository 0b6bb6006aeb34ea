"""Locks that a forked child can take."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ProcessLock:
    """A reentrant lock that is new in a forked child: the thread that holds the old one may not exist there.

    For what lives as long as the process does, since what is done at a fork can't be taken back.
    """

    def __init__(self) -> None:
        self._renew()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold it for the block."""
        with self._lock:  # the one of now: a child that was forked in the block releases what it took
            yield

    def _renew(self) -> None:
        self._lock = threading.RLock()
