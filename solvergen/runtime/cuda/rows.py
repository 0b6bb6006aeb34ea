"""Rows of tensors on a GPU: taken out, put back, and summed up, by a kernel of solvergen's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import ROWS_TEXT, Kernels
from solvergen.runtime.cuda.starting import Lent, Memory, Region, Starter
from solvergen.runtime.cuda.tables import MAX_BLOCKS, THREADS
from solvergen.runtime.dtypes import STORAGE_TYPES, compute_dtype

TAKE, PUT, SUM = range(3)
"""What the kernel is compiled to do."""


class DeviceRows:
    """See ``RowWork``. The tables of indices go to the GPU before anything else, which waits for it."""

    def __init__(
        self,
        starter: Starter,
        kernels: Kernels,
        empty: Callable[[tuple[int, ...], np.dtype[Any]], Array],
        address: Callable[[Array], int],
    ) -> None:
        """
        Args:
            starter: of the device.
            kernels: the compiled ones.
            empty: makes an array there.
            address: of an array's first element.
        """
        self._starter = starter
        self._kernels = kernels
        self._empty = empty
        self._address = address
        self._placed: tuple[HostArray, Memory] | None = None

    def taken(self, whole: Array, places: HostArray, part: Array | None = None) -> Array:
        """See ``RowWork``. What ``put`` needs is made here: nothing fails once a step is under way."""
        if self._placed is None or self._placed[0] is not places:
            self._placed = places, self._tables(places)
        self._kernel(PUT, whole)
        part = self._empty((len(places), *whole.shape[1:]), whole.dtype) if part is None else part
        self._run(TAKE, whole, part, len(places), self._placed[1])
        return part

    def put(self, whole: Array, places: HostArray, part: Array) -> None:
        """See ``RowWork``."""
        if self._placed is None or self._placed[0] is not places:
            self._placed = places, self._tables(places)
        self._run(PUT, part, whole, len(places), self._placed[1])

    def summed(self, rows: Array, which: HostArray, count: int) -> Array:
        """See ``RowWork``."""
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(count + 1))
        total = self._empty((count, *rows.shape[1:]), compute_dtype(rows.dtype.name))
        self._run(SUM, rows, total, count, self._tables(order, starts))
        return total

    def _tables(self, places: HostArray, starts: HostArray | None = None) -> Memory:
        return Memory(
            self._starter.device,
            places=places.astype(np.int64),
            starts=np.zeros(1, np.int64) if starts is None else starts.astype(np.int64),
        )

    def _kernel(self, work: int, source: Array) -> Kernel:
        dtype = source.dtype
        device, code = self._starter.device, STORAGE_TYPES[dtype.name].code
        return self._kernels.rows(device, work, dtype.itemsize, code)

    def _run(self, work: int, source: Array, target: Array, count: int, tables: Memory) -> None:
        length = math.prod(target.shape[1:])
        if not count * length:
            return
        arguments = (
            self._lent("the rows that are read", source),
            self._lent("the rows that are written", target, writable=True),
            tables.region("places", "the table of rows"),
            tables.region("starts", "the table of where rows begin"),
            np.int64(count),
            np.int64(length),
        )
        blocks = min(-(-count * length // THREADS), MAX_BLOCKS)
        self._starter.start(self._kernel(work, source), ROWS_TEXT, blocks, arguments)

    def _lent(self, name: str, array: Array, *, writable: bool = False) -> Lent:
        region = Region(name, self._address(array), array.nbytes, array.dtype.itemsize, writable)
        return Lent(region, array)
