"""Which buffer an address belongs to.

Kernels see addresses as they would on a GPU: those of the host's arrays, of variables, of the windows through
which generic addresses reach shared and local memory. What they refer to lies in one block of memory of the
machine's own, each region at an offset that equals its address modulo 256, with gaps between regions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray

ALIGNMENT = 256
"""Regions keep their address modulo this: what CUDA's allocations are aligned to."""

GLOBAL_VARIABLES = 1 << 58
"""Where variables in global and constant memory begin: above all of the host's addresses."""

SHARED_WINDOW = 1 << 60
"""What is added to an address in shared memory to make it generic."""

LOCAL_WINDOW = 1 << 61
"""What is added to an address in local memory to make it generic."""

FIRST_SHARED = 1024
"""The address of the first variable in shared and in local memory: 0 belongs to none."""


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of addresses. ``name`` is what messages call it: ``parameter 'w1'``."""

    name: str
    address: int
    nbytes: int
    writable: bool = True

    @property
    def end(self) -> int:
        """One past its last address."""
        return self.address + self.nbytes


class Stray(Exception):
    """An access that lies in no region, or not wholly in one. ``position`` among the addresses."""

    def __init__(self, position: int, message: str, name: str) -> None:
        self.position = position
        self.message = message
        self.name = name
        super().__init__(message)


class Regions:
    """Regions that don't overlap, by address, and their places in the machine's memory.

    ``nbytes`` is the size of the memory that they need, ``offset_of`` where each begins in it, in the order
    of ``regions``, which is by address.
    """

    def __init__(self, regions: Sequence[Region]) -> None:
        self.regions = tuple(sorted((r for r in regions if r.nbytes), key=lambda r: r.address))
        self._starts = [region.address for region in self.regions]
        self._ends = [region.end for region in self.regions]
        offsets, end = [], 0
        for region in self.regions:
            offset = -(-end // ALIGNMENT) * ALIGNMENT + ALIGNMENT + region.address % ALIGNMENT
            offsets.append(offset)
            end = offset + region.nbytes
        self.nbytes = (-(-end // ALIGNMENT) + 1) * ALIGNMENT
        self.offset_of = tuple(offsets)
        self._shifts = [offset - start for offset, start in zip(offsets, self._starts, strict=True)]
        self._start_array = np.array(self._starts, np.int64)
        self._end_array = np.array(self._ends, np.int64)
        self._shift_array = np.array(self._shifts, np.int64)

    def locate(self, addresses: HostArray, nbytes: int) -> tuple[HostArray, int | HostArray, int, int]:
        """Offsets of accesses of ``nbytes`` at ``addresses`` (int64), and the index of each one's region (one
        int where it is the same for all), and the lowest and highest address. Raises Stray.
        """
        if not self.regions:
            raise Stray(0, *self._describe(int(addresses[0]), nbytes))
        low, high = int(addresses.min()), int(addresses.max())
        index = bisect_right(self._starts, low) - 1
        if index >= 0 and high + nbytes <= self._ends[index]:
            return addresses + self._shifts[index], index, low, high
        found = np.searchsorted(self._start_array, addresses, "right") - 1
        outside = (found < 0) | (addresses > self._end_array[found] - nbytes)
        if outside.any():
            position = int(outside.argmax())
            raise Stray(position, *self._describe(int(addresses[position]), nbytes))
        return addresses + self._shift_array[found], found, low, high

    def name(self, index: int | HostArray, position: int) -> str:
        """What the region of an access is called."""
        return self.regions[index if isinstance(index, int) else int(index[position])].name

    def _describe(self, address: int, nbytes: int) -> tuple[str, str]:
        shown = f"{address & (1 << 64) - 1:#x}"
        if not self.regions:
            return f"at {shown}, but the kernel has no memory there", ""

        def distance(region: Region) -> int:
            return max(region.address - address, address - region.end, 0)

        # An access that begins in a region and runs over its end is about that region.
        nearest = min(self.regions, key=distance)
        where = f"{nearest.name} ({nearest.nbytes} bytes from {nearest.address:#x})"
        if nearest.address <= address < nearest.end:
            over = address + nbytes - nearest.end
            return f"at {shown}, of which {over} lie behind the end of {where}", nearest.name
        if address < nearest.address:
            return f"at {shown}, {nearest.address - address} bytes before {where}", nearest.name
        behind = f"{address - nearest.end} bytes" if address > nearest.end else "right"
        return f"at {shown}, {behind} behind the end of {where}", nearest.name
