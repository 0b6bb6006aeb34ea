"""What the native backend has of lines for one launch: tiles, partial totals, stages of lines, reductions.

A pass over tiles reads rows through several tiles side by side, so that memory is read far at a stretch.
Their partial totals of columns lie in rows, as they are formed; ``cpu_reductions`` brings them together.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.backends.cpu import CHUNK_SIZE, unit_table
from solvergen.runtime.backends.cpu_reductions import ColumnReducer, Reducer, column_pieces
from solvergen.runtime.buffers import address_of
from solvergen.runtime.definition import RANKS, Pass, Rank
from solvergen.runtime.kernel_interface import chunk_table
from solvergen.runtime.lines import (
    TILE_COLUMNS,
    TILE_ROWS,
    LineTables,
    first_lines,
    line_counts,
    partial_offsets,
    tile_table,
)
from solvergen.runtime.native.library import Lines, LineStage, Stage, function_address, library

PIECE_LINES = 1 << 12
"""Lines that a thread claims at a time."""

NARROW = 1 << 12
"""Elements of narrow matrices that are taken together, if they have so many."""


@dataclass(frozen=True)
class Tiles:
    """What a pass over tiles is given: addresses of tiles, offsets, and both arrays of partial totals."""

    addresses: tuple[int, int, int, int] = (0, 0, 0, 0)
    reducers: tuple[Reducer | ColumnReducer, ...] = field(default=())


class CpuLines:
    """The tables of lines as a launch's kernels and reductions see them."""

    def __init__(
        self, plan: LaunchPlan, kernel: ctypes.CDLL, tables: LineTables, positions: HostArray
    ) -> None:
        self._plan = plan
        self._tables = tables
        own = tables.tables
        self._lines = Lines(
            address_of(tables.geometry),
            *(
                address_of(array)
                for rank in ("rows", "columns", "matrices")
                for array in (own[rank].totals, own[rank].values, own[rank].states)
            ),
            *(own[rank].stride for rank in ("rows", "columns", "matrices")),
        )
        self.address = ctypes.addressof(self._lines)
        self._geometry = tables.geometry[positions]
        # The kernel has arrays for so many tiles side by side.
        side_by_side = ctypes.c_int64.in_dll(kernel, "sg_tiles").value
        self._tiles = tile_table(self._geometry, self._rows(), side_by_side * TILE_COLUMNS)
        elements = self._tiles["rows"].astype(np.int64) * self._tiles["columns"]
        self.units = unit_table(elements, CHUNK_SIZE)
        """Where units of tiles begin."""
        self._offsets = partial_offsets(self._geometry)
        self._keeps: list[object] = []

    def _rows(self) -> HostArray:
        """How many rows of each tensor are taken at a time: of narrow matrices those of several tiles."""
        width = np.maximum(self._geometry[:, 2], 1)
        below = np.where(width <= TILE_COLUMNS // 2, NARROW // (width * TILE_ROWS), 1)
        rows: HostArray = TILE_ROWS * np.maximum(below, 1)
        return rows

    def tiles(self, one: Pass) -> Tiles:
        """What a pass over tiles reads and leaves, and what reduces that."""
        reducers: list[Reducer | ColumnReducer] = []
        totals = {rank: self._tables.tables[rank].totals for rank in RANKS}
        n_rows, n_columns = self._offsets[-1].tolist()
        rows = np.zeros((max(1, n_rows), len(one.row_kinds)))
        columns = np.zeros((max(1, n_columns), len(one.column_kinds)))
        if one.row_kinds:
            kinds = [(i, one.row_first + i, kind == "max_abs") for i, kind in enumerate(one.row_kinds)]
            starts, ends, numbers = self._rows_of_several_tiles()
            reducers.append(Reducer(rows, starts, numbers, kinds, totals["rows"], ends))
        if one.column_kinds:
            pieces = column_pieces(self._geometry, self._offsets[:-1, 1])
            largest = [kind == "max_abs" for kind in one.column_kinds]
            reducers.append(ColumnReducer(columns, pieces, largest, totals["columns"], one.column_first))
        self._keeps += [rows, columns]
        arrays = (self._tiles, self._offsets, rows, columns)
        addresses = tuple(address_of(array) for array in arrays)
        return Tiles((addresses[0], addresses[1], addresses[2], addresses[3]), tuple(reducers))

    def line_reducers(self, one: Pass, totals: HostArray) -> list[Reducer]:
        """What makes a pass's reductions of what belongs to lines; ``totals`` are those of tensors."""
        made = []
        positions = np.array(self._plan.positions, np.int32)
        for line in one.line_reductions:
            counts, first = line_counts(line.source, self._geometry), first_lines(line.source, self._geometry)
            places, out = positions, totals
            there = self._geometry[:, 6] > 1 if line.of_matrices else np.full(len(positions), True)
            if line.over == "matrices":
                matrices = self._geometry[:, 0]
                each = np.repeat(counts // np.maximum(matrices, 1), matrices)
                within = np.arange(len(each)) - np.repeat(np.cumsum(matrices) - matrices, matrices)
                first, counts = np.repeat(first, matrices) + within * each, each
                places, out = self._numbers("matrices"), self._tables.tables["matrices"].totals
                there = np.repeat(there, matrices)
            if not there.any():
                continue
            starts = first[there].astype(np.int64)
            ends, places = starts + counts[there], places[there]
            columns = [(line.value, line.target, line.kind == "max_abs")]
            values = self._tables.tables[line.source].values
            made.append(Reducer(values, starts, places, columns, out, ends))
        return made

    def stages(self, kernel: ctypes.CDLL, stage: Stage) -> dict[int, list[tuple[int, int, int, int, int]]]:
        """What runs the stages of lines: the pool's arguments for each, in order, by number."""
        found: dict[int, list[tuple[int, int, int, int, int]]] = {}
        for rank in RANKS:
            numbers = [number for number, own in self._plan.definition.line_stages if own == rank]
            if not numbers:
                continue
            pieces = chunk_table(line_counts(rank, self._geometry), PIECE_LINES)
            job = LineStage(ctypes.addressof(stage), address_of(pieces))
            units = np.arange(len(pieces) + 1, dtype=np.int64)
            if int(pieces["count"].sum()) <= PIECE_LINES:
                units = np.array([0, len(pieces)], np.int64)
            self._keeps += [pieces, job, units]
            helpers = min(library().helpers(), len(units) - 2)
            for number in numbers:
                found.setdefault(number, []).append(
                    (
                        function_address(getattr(kernel, f"sg_{rank}_stage_{number}")),
                        ctypes.addressof(job),
                        address_of(units),
                        len(units) - 1,
                        max(0, helpers),
                    )
                )
        return found

    def _rows_of_several_tiles(self) -> tuple[HostArray, HostArray, HostArray]:
        """Where their partial totals lie, and their numbers. Of other rows kernels leave the total."""
        across = np.repeat(-(-self._geometry[:, 2] // TILE_COLUMNS), line_counts("rows", self._geometry))
        ends = np.cumsum(across).astype(np.int64)
        several = np.flatnonzero(across > 1)
        return (ends - across)[several], ends[several], self._numbers("rows")[several]

    def _numbers(self, rank: Rank) -> HostArray:
        """The numbers of all lines of the launch, tensor by tensor: their rows of the tables."""
        counts = line_counts(rank, self._geometry)
        within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        numbers: HostArray = (np.repeat(first_lines(rank, self._geometry), counts) + within).astype(np.int32)
        return numbers
