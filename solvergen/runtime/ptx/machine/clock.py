"""What happened before what: barriers, seen from the accesses that they order.

A clock ticks at every barrier. A thread's access happened before another's if a barrier of their block came
between them, or one of their warp. Different blocks are never ordered within a launch.
"""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray

WARP = 32
"""Threads of a warp."""

SAME_THREAD, SAME_WARP, SAME_BLOCK, APART = range(4)
"""How near two threads are to one another."""


class Clock:
    """The time of a launch with ``blocks`` blocks of ``threads`` threads."""

    def __init__(self, blocks: int, threads: int) -> None:
        self.threads = threads
        self.warps = -(-threads // WARP)
        self.now = 0
        self.met = 0
        """When all blocks that run together last met at a barrier of theirs, at the same time; 0 if never."""
        self._together = 0
        self._of_block = np.zeros(blocks, np.int32)
        self._of_warp = np.zeros(blocks * self.warps, np.int32)

    def begin(self, blocks: int) -> None:
        """So many blocks begin, and run together."""
        self._together, self.met = blocks, 0

    def block_barrier(self, blocks: HostArray) -> None:
        """The threads of these blocks have met."""
        self.now += 1
        self._of_block[blocks] = self.now
        if len(blocks) == self._together:
            self.met = self.now

    def warp_barrier(self, warps: HostArray) -> None:
        """The threads of these warps, by their number in the grid, have met."""
        self.now += 1
        self._of_warp[warps] = self.now

    def warp_of(self, threads: HostArray) -> HostArray:
        """The warps of threads, as numbers in the grid."""
        warps: HostArray = threads // self.threads * self.warps + threads % self.threads // WARP
        return warps

    def nearness(self, first: HostArray, second: HostArray) -> HostArray:
        """How near threads are to one another, pair by pair."""
        blocks = first // self.threads == second // self.threads
        warps = blocks & (first % self.threads // WARP == second % self.threads // WARP)
        nearness: HostArray = APART - blocks.astype(np.int32) - warps - (first == second)
        return nearness

    def before(self, nearness: HostArray, threads: HostArray, stamps: HostArray) -> HostArray:
        """Whether what others did at ``stamps`` came before what ``threads`` do now; ``nearness`` is the
        farthest of those others."""
        met: HostArray = (nearness <= SAME_BLOCK) & (stamps < self._of_block[threads // self.threads])
        if self._of_warp.any():
            met |= (nearness <= SAME_WARP) & (stamps < self._of_warp[self.warp_of(threads)])
        met |= nearness == SAME_THREAD
        return met
