"""What reduces the totals that passes of the native backend leave: jobs for the pool with their tables."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.cpu import unit_table
from solvergen.runtime.buffers import address_of
from solvergen.runtime.lines import TILE_ROWS, first_lines
from solvergen.runtime.native.library import ColumnReduction, Reduction, library

MANY_TERMS = 1 << 16
"""Fewer terms than that are reduced by the caller: waking a thread takes as long."""


def _steps(table: HostArray) -> tuple[int, int]:
    """How many numbers lie between a table's rows, and between its columns."""
    rows, columns = table.strides
    return rows // table.itemsize, columns // table.itemsize


class Reducer:
    """Reduces segments of rows of terms to rows of totals: a job for the pool with its tables."""

    def __init__(
        self,
        terms: HostArray,
        offsets: HostArray,
        places: HostArray,
        columns: Sequence[tuple[int, int, bool]],
        out: HostArray,
        ends: HostArray | None = None,
    ) -> None:
        """``offsets``: where each segment's rows of ``terms`` begin, and their end; ``places``: the row of
        ``out`` for each. ``columns``: column of ``terms``, column of ``out``, whether the larger is taken.

        Segments that don't follow one another have their ends in ``ends``.
        """
        starts = offsets if ends is not None else offsets[:-1]
        ends = offsets[1:] if ends is None else ends
        n_terms = int(ends.max(initial=0))
        fits = (
            terms.shape[0] >= n_terms
            and out.ndim == 2
            and all(0 <= a < terms.shape[1] and 0 <= b < out.shape[1] for a, b, _ in columns)
            and (places.size == 0 or 0 <= int(places.min()) <= int(places.max()) < len(out))
        )
        if not fits:
            raise CompilerBug(f"reductions {columns} of {terms.shape} to {out.shape}")
        self._run = library().run
        from_ = np.array([column for column, _, _ in columns], np.int32)
        to = np.array([column for _, column, _ in columns], np.int32)
        largest = np.array([larger for _, _, larger in columns], np.uint8)
        self._keeps = (terms, starts, ends, places, from_, to, largest, out)
        self._job = Reduction(
            address_of(terms),
            *_steps(terms),
            address_of(starts),
            address_of(ends),
            address_of(places),
            address_of(from_),
            address_of(to),
            address_of(largest),
            len(columns),
            address_of(out),
            *_steps(out),
        )
        self._units, helpers = np.array([0, len(places)], np.int64), 0
        if n_terms * len(columns) >= MANY_TERMS and len(places) > 1:
            self._units = unit_table(ends - starts, MANY_TERMS // 4)
            helpers = min(library().helpers(), len(self._units) - 2)
        self._arguments = (
            library().reduce,
            ctypes.addressof(self._job),
            address_of(self._units),
            len(self._units) - 1,
            helpers,
        )

    def run(self) -> None:
        """Reduce."""
        self._run(*self._arguments)


PIECE = np.dtype([(name, np.int64) for name in ("start", "tiles", "width", "place", "count")])
"""Some columns of a matrix: ``sg_columns`` in the library."""

PIECE_COLUMNS = 256
"""Columns of a piece at most."""


class ColumnReducer:
    """Reduces the partial totals of columns, [matrices][tiles down][columns], to totals of columns."""

    def __init__(
        self, terms: HostArray, pieces: HostArray, largest: Sequence[bool], out: HostArray, first: int
    ) -> None:
        """``terms`` has a column for each of ``largest``, whose totals are those from ``first`` on of
        ``out``."""
        columns = len(largest)
        if terms.shape[1] != columns or first + columns > out.shape[1]:
            raise CompilerBug(f"reductions of columns of {terms.shape} to {out.shape} from {first} on")
        self._run = library().run
        flags = np.array(largest, np.uint8)
        self._keeps = (terms, pieces, flags, out)
        self._job = ColumnReduction(
            address_of(terms),
            address_of(pieces),
            address_of(flags),
            columns,
            address_of(out),
            *_steps(out),
            first,
        )
        costs = pieces["tiles"] * pieces["count"] * columns
        self._units, helpers = np.array([0, len(pieces)], np.int64), 0
        if len(pieces) > 1 and int(costs.sum()) >= MANY_TERMS:
            self._units = unit_table(costs, MANY_TERMS // 4)
            helpers = min(library().helpers(), len(self._units) - 2)
        self._arguments = (
            library().reduce_columns,
            ctypes.addressof(self._job),
            address_of(self._units),
            len(self._units) - 1,
            helpers,
        )

    def run(self) -> None:
        """Reduce."""
        self._run(*self._arguments)


def column_pieces(geometry: HostArray, offsets: HostArray) -> HostArray:
    """The pieces of all matrices of a launch: ``geometry`` of its tensors, ``offsets`` of their partials."""
    count, rows, columns = geometry[:, 0], geometry[:, 1], geometry[:, 2]
    parts = -(-columns // PIECE_COLUMNS)
    counts = count * parts
    tensor = np.repeat(np.arange(len(geometry)), counts)
    pieces = np.zeros(len(tensor), PIECE)
    place = np.arange(len(tensor)) - (np.cumsum(counts) - counts)[tensor]
    matrix, part = np.divmod(place, np.maximum(parts, 1)[tensor])
    column = part * PIECE_COLUMNS
    tiles, width = -(-rows // TILE_ROWS)[tensor], columns[tensor]
    pieces["tiles"], pieces["width"] = tiles, width
    pieces["start"] = offsets[tensor] + matrix * tiles * width + column
    pieces["place"] = first_lines("columns", geometry)[tensor] + matrix * width + column
    pieces["count"] = np.minimum(width - column, PIECE_COLUMNS)
    return pieces
