"""Rows of tensors on a GPU: taken out, put back, and summed up, by a kernel of solvergen's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.runtime.arrays import Array, HostArray
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

    def taken(self, whole: Array, places: HostArray, part: Array | None = None) -> Array:
        """See ``RowWork``."""
        part = self._empty((len(places), *whole.shape[1:]), whole.dtype) if part is None else part
        self._run(TAKE, whole, part, places, len(places))
        return part

    def put(self, whole: Array, places: HostArray, part: Array) -> None:
        """See ``RowWork``."""
        self._run(PUT, part, whole, places, len(places))

    def summed(self, rows: Array, which: HostArray, count: int) -> Array:
        """See ``RowWork``."""
        order = np.argsort(which, kind="stable")
        starts = np.searchsorted(which[order], np.arange(count + 1))
        dtype = compute_dtype(rows.dtype.name)
        total = self._empty((count, *rows.shape[1:]), dtype)
        self._run(SUM, rows, total, order, count, starts)
        return total

    def _run(
        self,
        work: int,
        source: Array,
        target: Array,
        places: HostArray,
        count: int,
        starts: HostArray | None = None,
    ) -> None:
        length = int(np.prod(target.shape[1:], dtype=np.int64))
        if not count * length:
            return
        device = self._starter.device
        tables = Memory(
            device,
            places=places.astype(np.int64),
            starts=np.zeros(1, np.int64) if starts is None else starts.astype(np.int64),
        )
        kernel = self._kernels.rows(
            device, work, source.dtype.itemsize, STORAGE_TYPES[source.dtype.name].code
        )
        arguments = (
            self._lent("the rows that are read", source),
            self._lent("the rows that are written", target, writable=True),
            tables.region("places", "the table of rows"),
            tables.region("starts", "the table of where rows begin"),
            np.int64(count),
            np.int64(length),
        )
        blocks = min(-(-count * length // THREADS), MAX_BLOCKS)
        self._starter.start(kernel, ROWS_TEXT, blocks, arguments)

    def _lent(self, name: str, array: Array, *, writable: bool = False) -> Lent:
        region = Region(name, self._address(array), array.nbytes, array.dtype.itemsize, writable)
        return Lent(region, array)
