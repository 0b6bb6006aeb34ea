"""Bytes of which every access is checked: it lies in one buffer, is aligned, reads only what was written,
writes only what may be written, and races with no other thread's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.atomics import Change, apply
from solvergen.runtime.ptx.machine.clock import Clock
from solvergen.runtime.ptx.machine.faults import Violation
from solvergen.runtime.ptx.machine.kinds import CHANGED, DONE, RACE, RACES, READS, VERBS, WRITES, Access, Kind
from solvergen.runtime.ptx.machine.marks import Marks, Where
from solvergen.runtime.ptx.machine.regions import Regions, Stray

_WORDS: dict[int, np.dtype[Any]] = {
    1: np.dtype("u1"),
    2: np.dtype("u2"),
    4: np.dtype("u4"),
    8: np.dtype("u8"),
    16: np.dtype("c16"),
}
"""Types by which accesses of each width are moved in one go. No arithmetic is done on them."""

_SHIFTS = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4}


@dataclass(frozen=True, slots=True)
class _Placed:
    """Accesses, found in memory. ``run``: they are one stretch, in order."""

    offsets: HostArray
    region: int | HostArray
    run: bool


class Memory:
    """The memory of one state space: global, or the shared or local memory of some blocks.

    ``copies``: how often the regions are there, one after the other, for each block or thread; an access
    says which copy it means. ``granule``: bytes to a mark; no access is narrower. ``kinds``: of access that
    the kernel makes here. ``clock`` None: races aren't looked for. ``backwards``: atomics of one instruction
    take turns from the last thread to the first.
    """

    def __init__(
        self,
        regions: Regions,
        *,
        granule: int,
        kinds: Iterable[Kind],
        clock: Clock | None,
        initialised: bool,
        copies: int = 1,
        backwards: bool = False,
        own: bool = False,
    ) -> None:
        self.regions = regions
        self.stride = regions.nbytes
        size = self.stride * copies
        spare = np.empty(size + 256, np.uint8)
        begin = -spare.ctypes.data % 256
        self.bytes: HostArray = spare[begin : begin + size]
        self._views = {dtype: self.bytes.view(dtype) for dtype in _WORDS.values()}
        self._granule = granule
        self._backwards = backwards
        self._read_only = np.array([not region.writable for region in regions.regions], np.bool_)
        kinds = frozenset(kinds)
        # Nothing races where nothing is written.
        watched = kinds if clock is not None and kinds & WRITES else frozenset[Kind]()
        self._marks = {kind: Marks(size // granule, clock, own=own) for kind in watched if clock is not None}
        self._valid = None if initialised else np.zeros(size // granule, np.bool_)
        # Of these nothing needs to be asked when they are read: they hold values, and nobody writes them.
        self._settled = self._read_only & (self._valid is None)

    def contents(self, index: int) -> HostArray:
        """The bytes of the ``index``-th region, of the first copy."""
        begin = self.regions.offset_of[index]
        return self.bytes[begin : begin + self.regions.regions[index].nbytes]

    def declare_written(self, index: int, written: HostArray | None = None) -> None:
        """The ``index``-th region holds values from the beginning: all of it, or where ``written``."""
        if self._valid is None:
            return
        begin, nbytes = self.regions.offset_of[index], self.regions.regions[index].nbytes
        first, end = begin // self._granule, -(-(begin + nbytes) // self._granule)
        bytes_written = np.zeros((end - first) * self._granule, np.bool_)
        inside = begin - first * self._granule
        bytes_written[inside : inside + nbytes] = True if written is None else written
        # A granule that the region has a part of only can't be accessed as a whole.
        granules: HostArray = np.logical_and.reduce(bytes_written.reshape(-1, self._granule), axis=1)
        self._settled[index] = self._read_only[index] and granules.all()
        self._valid.reshape(-1, self.stride // self._granule)[:, first:end] |= granules

    def written(self, index: int) -> HostArray:
        """Which bytes of the ``index``-th region hold values."""
        begin, nbytes = self.regions.offset_of[index], self.regions.regions[index].nbytes
        if self._valid is None:
            return np.ones(nbytes, np.bool_)
        return np.repeat(self._valid, self._granule)[begin : begin + nbytes]

    def load(
        self, access: Access, addresses: HostArray, copies: HostArray | None, mine: HostArray
    ) -> tuple[HostArray, ...]:
        """The values at ``addresses`` (int64): ``access.count`` arrays, as long as ``addresses``.

        ``mine``: the marks of all threads that take part; ``addresses`` of length 1 are the same for all.
        Raises Violation.
        """
        placed = self._place(access, addresses, copies)
        if (self._valid is not None or self._marks) and not self._settled[placed.region].all():
            self._check(access, placed, mine)
        offsets, nbytes, n = placed.offsets, access.nbytes, len(placed.offsets)
        if placed.run:
            begin = int(offsets[0])
            values = self.bytes[begin : begin + n * nbytes].view(access.dtype)
            if access.count == 1:
                return (values.copy(),)
        else:
            width = min(nbytes, 16)
            words = self._views[_WORDS[width]]
            places = offsets >> _SHIFTS[width]
            if nbytes == width:
                values = words.take(places).view(access.dtype)
            else:
                values = np.stack([words.take(places), words.take(places + 1)], axis=1).view(access.dtype)
            if access.count == 1:
                return (values,)
        return tuple(np.ascontiguousarray(values.reshape(n, access.count).T))

    def store(
        self,
        access: Access,
        addresses: HostArray,
        copies: HostArray | None,
        mine: HostArray,
        values: tuple[HostArray, ...],
    ) -> None:
        """Write ``values``, of the access's dtype, as long as ``mine`` or of length 1. Raises Violation."""
        if len(addresses) != len(mine):
            addresses = np.repeat(addresses, len(mine))
        placed = self._place(access, addresses, copies)
        self._check(access, placed, mine)
        offsets, nbytes, n = placed.offsets, access.nbytes, len(mine)
        if placed.run:
            begin = int(offsets[0])
            target = self.bytes[begin : begin + n * nbytes].view(access.dtype).reshape(n, access.count)
            for lane, value in enumerate(values):
                target[:, lane] = value
            return
        width = min(nbytes, 16)
        places = offsets >> _SHIFTS[width]
        words = np.empty((n, access.count), access.dtype)
        for lane, value in enumerate(values):
            words[:, lane] = value
        whole: HostArray = words.view(_WORDS[width])
        for part in range(whole.shape[1]):
            self._views[_WORDS[width]][places + part] = whole[:, part]

    def update(
        self,
        access: Access,
        addresses: HostArray,
        copies: HostArray | None,
        mine: HostArray,
        change: Change,
        operands: tuple[HostArray, ...],
    ) -> HostArray:
        """Atomics, one thread after the other. Returns what each found. Raises Violation."""
        if len(addresses) != len(mine):
            addresses = np.repeat(addresses, len(mine))
        placed = self._place(access, addresses, copies)
        self._check(access, placed, mine)
        places = placed.offsets >> _SHIFTS[access.nbytes]
        values = self.bytes.view(access.dtype)
        spread = [np.broadcast_to(operand, len(mine)) for operand in operands]
        turn = slice(None, None, -1 if self._backwards else 1)
        return apply(values, places[turn], tuple(operand[turn] for operand in spread), change)[turn]

    def _place(self, access: Access, addresses: HostArray, copies: HostArray | None) -> _Placed:
        nbytes = access.nbytes
        try:
            offsets, region, low, high = self.regions.locate(addresses, nbytes)
        except Stray as stray:
            message = f"{VERBS[access.kind]} {nbytes} bytes {stray.message}"
            raise Violation(access.instruction, stray.position, message, buffer=stray.name) from None
        run = (
            (copies is None or len(copies) == 1)
            and high - low == (len(addresses) - 1) * nbytes
            and low != high
            and isinstance(region, int)
            and bool((addresses == np.arange(low, high + 1, nbytes)).all())
        )
        if low & (nbytes - 1) if run else bool((addresses & (nbytes - 1)).any()):
            position = int(((addresses & (nbytes - 1)) != 0).argmax())
            name = self.regions.name(region, position)
            message = (
                f"{VERBS[access.kind]} {nbytes} bytes at {int(addresses[position]):#x} in {name}: the "
                f"address is not a multiple of {nbytes}"
            )
            raise Violation(access.instruction, position, message, buffer=name)
        return _Placed(offsets if copies is None else offsets + copies * self.stride, region, run)

    def _check(self, access: Access, placed: _Placed, mine: HostArray) -> None:
        kind, nbytes, region = access.kind, access.nbytes, placed.region

        def violation(position: int, problem: str, other: int | None = None) -> Violation:
            name = self.regions.name(region, min(position, len(placed.offsets) - 1))
            what = f"{VERBS[kind]} {nbytes} bytes of {name}"
            offset = int(placed.offsets[min(position, len(placed.offsets) - 1)]) % self.stride
            index = region if isinstance(region, int) else int(region[min(position, len(region) - 1)])
            inside = offset - self.regions.offset_of[index]
            message = f"{what}, from byte {inside}, {problem}"
            return Violation(access.instruction, position, message, buffer=name, other=other)

        if kind in WRITES and self._read_only[region].any():
            position = int(np.broadcast_to(self._read_only[region], len(placed.offsets)).argmax())
            raise violation(position, "which is only to be read")
        where, marks, each = self._granules(placed, nbytes, mine)
        if self._valid is not None:
            if kind in READS and not (there := self._valid[where]).all():
                raise violation(int(there.argmin()) // each, "which nothing has written")
            if kind in WRITES:
                self._valid[where] = True
        if not self._marks:
            return
        for other in RACES[kind]:
            if other not in self._marks:
                continue
            constant = "constant read" in (kind, other)
            if found := self._marks[other].conflict(where, marks, always=constant):
                problem = CHANGED if constant else RACE
                raise violation(found[0] // each, problem.format(DONE[other]), found[1])
        own = self._marks[kind]
        own.leave(where, marks)
        if kind == "write" and (found := own.clash(where, marks)):
            raise violation(found[0] // each, RACE.format("writes"), found[1])

    def _granules(self, placed: _Placed, nbytes: int, mine: HostArray) -> tuple[Where, HostArray, int]:
        """The granules of accesses, the marks that go there, and how many each access has."""
        each = nbytes // self._granule
        offsets = placed.offsets
        marks = mine if each == 1 else np.repeat(mine, each)
        if placed.run:
            begin = int(offsets[0]) // self._granule
            return slice(begin, begin + len(offsets) * each), marks, each
        index = offsets >> _SHIFTS[self._granule]
        if len(index) != len(mine):
            index = np.repeat(index, len(mine))
        if each > 1:
            index = (index[:, np.newaxis] + np.arange(each)).reshape(-1)
        return index, marks, each
