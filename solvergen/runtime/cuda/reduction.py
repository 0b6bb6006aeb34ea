"""Terms to totals on a GPU: the tables of one reduction, and its launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import REDUCE_TEXT
from solvergen.runtime.cuda.starting import Memory, Region, Starter
from solvergen.runtime.cuda.tables import MAX_BLOCKS, THREADS
from solvergen.runtime.ordering import CHUNK_TERMS

SHORT = 32
"""Terms that a part of a warp reduces; of more, a block does."""

MANY = 256
"""Short segments that get a launch of their own beside longer ones; fewer go along with them."""


class Column(NamedTuple):
    """A reduction: its column in the rows of terms, in those of results, and whether the largest is taken."""

    terms: int
    result: int
    largest: bool


class Reduction:
    """Segments of rows of terms, each of which becomes a row of results. Prepared once, run in every step.

    One launch or two, whatever the number of segments and their lengths.
    """

    def __init__(
        self,
        starter: Starter,
        kernel: Kernel,
        lengths: Sequence[int] | HostArray,
        places: Sequence[int] | HostArray,
        columns: Sequence[Column],
        begins: Sequence[int] | HostArray | None = None,
    ) -> None:
        """
        Args:
            starter: of the device.
            kernel: ``Kernels.reduce``.
            lengths: rows of terms of each segment.
            places: the row of results of each segment.
            columns: at least one.
            begins: the first row of terms of each segment; if None, they follow one another.
        """
        counts = np.asarray(lengths, np.int64)
        first = np.cumsum(counts) - counts if begins is None else np.asarray(begins, np.int64)
        rows = np.asarray(places, np.int32)
        short = counts <= SHORT
        if short.all() or np.count_nonzero(short) < MANY:
            parts = [np.arange(len(counts))] if len(counts) else []
        else:
            parts = [np.flatnonzero(short), np.flatnonzero(~short)]
        self._parts = [
            _Part(starter, kernel, counts[part], rows[part], columns, first[part]) for part in parts
        ]

    def run(self, terms: Region, width: int, results: Region, stride: int) -> None:
        """Reduce.

        Args:
            terms: rows of ``width`` numbers.
            width: numbers in a row of terms.
            results: rows of ``stride`` numbers.
            stride: numbers in a row of results.
        """
        for part in self._parts:
            part.run(terms, width, results, stride)


class _Part:
    """The segments of one launch. ``span``: threads that take one, or the whole block."""

    def __init__(
        self,
        starter: Starter,
        kernel: Kernel,
        counts: HostArray,
        places: HostArray,
        columns: Sequence[Column],
        begins: HostArray,
    ) -> None:
        chunks = np.where(counts > CHUNK_TERMS, -(-counts // CHUNK_TERMS), 0)
        segments = np.stack([begins, begins + counts, np.cumsum(chunks) - chunks], axis=1)
        longest = int(counts.max(initial=1))
        self._starter = starter
        self._kernel = kernel
        self._segments = len(counts)
        self._columns = len(columns)
        self._span = 1 << (longest - 1).bit_length() if longest <= SHORT else THREADS
        self._tables = Memory(
            starter.device,
            segments=np.ascontiguousarray(segments),
            places=places,
            columns=np.array([tuple(map(int, column)) for column in columns], np.int32),
            scratch=int(chunks.sum()) * self._columns,
        )

    def run(self, terms: Region, width: int, results: Region, stride: int) -> None:
        arguments = (
            terms,
            np.int32(width),
            self._tables.region("segments", "the table of segments"),
            self._tables.region("places", "the table of rows of totals"),
            np.int64(self._segments),
            self._tables.region("columns", "the table of reductions"),
            np.int32(self._columns),
            self._tables.region("scratch", "the values of chunks", writable=True),
            results,
            np.int32(stride),
            np.int32(self._span),
            self._starter.skip or np.uint64(0),
        )
        blocks = min(-(-self._segments * self._columns * self._span // THREADS), MAX_BLOCKS)
        self._starter.start(self._kernel, REDUCE_TEXT, blocks, arguments)
