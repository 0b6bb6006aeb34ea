"""Who has touched what: one mark a granule, for one kind of access.

A mark names a thread and how far from it any other was that touched the same granule without a barrier
between: that is enough to tell, at a later access, whether all of them came before it.
"""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.clock import Clock

Where = slice | HostArray
"""Granules: a stretch of them, or one index an access."""

MAX_THREADS = 2**29 - 2
"""A mark has two bits for the nearness, and 0 is no mark."""


def mark_of(threads: HostArray) -> HostArray:
    """The mark that a thread leaves, int32."""
    return (threads.astype(np.int32) + 1) << 2


def thread_of(marks: HostArray) -> HostArray:
    """The threads that left marks."""
    return (marks >> 2) - 1


class Marks:
    """Marks of ``count`` granules. ``own``: each belongs to one of the blocks that run together, and only its
    threads can touch it."""

    def __init__(self, count: int, clock: Clock, *, own: bool = False) -> None:
        self._clock = clock
        self._own = own
        self._who = np.zeros(count, np.int32)
        self._when = np.zeros(count, np.int32)

    def conflict(self, where: Where, mine: HostArray, *, always: bool = False) -> tuple[int, int] | None:
        """The first of the accesses by ``mine`` that isn't after all that left marks there: its position and
        the thread that it races with; None if all are. ``always``: any mark will do, whosever it is."""
        who = self._who[where]
        if not who.any() or (not always and self._all_before(where)):
            return None
        if always:
            position = int((who != 0).argmax())
            return position, int(thread_of(who[position]))
        unordered = who != mine
        if not unordered.any():
            return None
        unordered &= who != 0
        unordered &= ~self._before(who, self._when[where], mine)
        if not unordered.any():
            return None
        position = int(unordered.argmax())
        return position, int(thread_of(who[position]))

    def leave(self, where: Where, mine: HostArray) -> None:
        """Leave marks, of one instruction; several accesses may be to one granule."""
        who = self._who[where]
        new = mine
        if who.any() and not self._all_before(where) and not (who == mine).all():
            merged = (who & ~3) | np.maximum(who & 3, self._clock.nearness(thread_of(who), thread_of(mine)))
            new = np.where((who == 0) | self._before(who, self._when[where], mine), mine, merged)
        self._who[where] = new
        if self._clock.now:  # what was before the first barrier bears a 0
            self._when[where] = self._clock.now
        if isinstance(where, slice):
            return
        lost = np.flatnonzero(self._who[where] != new)
        if lost.size:  # those to the same granules: one of them has left its mark, the others widen it
            there, others = where[lost], new[lost]
            won = self._who[there]
            nearness = self._clock.nearness(thread_of(won), thread_of(others))
            level = np.maximum(np.maximum(won & 3, others & 3), nearness)
            np.maximum.at(self._who, there, (won & ~3) | level)

    def clash(self, where: Where, mine: HostArray) -> tuple[int, int] | None:
        """Two accesses of one instruction to one granule, by different threads, right after ``leave``."""
        if isinstance(where, slice):
            return None
        now = self._who[where]
        differs = (now != mine) & (thread_of(now) != thread_of(mine))
        if not differs.any():
            return None
        position = int(differs.argmax())
        return position, int(thread_of(now[position]))

    def _all_before(self, where: Where) -> bool:
        """Whether a barrier of all blocks came after whatever left marks there: a quick look, which may miss
        that it is so."""
        return self._own and self._clock.met > 0 and bool((self._when[where] < self._clock.met).all())

    def _before(self, who: HostArray, when: HostArray, mine: HostArray) -> HostArray:
        threads = thread_of(mine)
        nearness = np.maximum(who & 3, self._clock.nearness(thread_of(who), threads))
        return self._clock.before(nearness, threads, when)
