"""Rows, columns and matrices of tensors on a GPU: their tables, and what a launch needs to work on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.reduction import Column, Reduction
from solvergen.runtime.cuda.starting import Memory, Region, Starter
from solvergen.runtime.definition import RANKS, Definition, LineReduction, Pass, Rank
from solvergen.runtime.lines import (
    TILE,
    TILE_COLUMNS,
    TILE_ROWS,
    first_lines,
    line_counts,
    partial_offsets,
    tile_table,
)


class DeviceLines:
    """The tables of an optimizer's lines: what is reduced along them, what stages compute, their states.

    Lines are numbered through all positions. See ``solvergen.runtime.lines``.
    """

    def __init__(self, definition: Definition, geometry: HostArray, starter: Starter) -> None:
        """``geometry``: the tensors as matrices, by position."""
        self.geometry = geometry
        self.counts: dict[Rank, int] = {rank: int(line_counts(rank, geometry).sum()) for rank in RANKS}
        widths: dict[str, tuple[int, int, int]] = {
            "totals": (definition.n_matrix_totals, definition.n_row_totals, definition.n_column_totals),
            "values": (definition.n_matrix_values, definition.n_row_values, definition.n_column_values),
        }
        self.widths: dict[tuple[Rank, str], int] = {
            (rank, kind): max(1, count)
            for kind, counts in widths.items()
            for rank, count in zip(RANKS, counts, strict=True)
        }
        for rank in RANKS:
            self.widths[rank, "states"] = max(1, len(definition.line_states[rank]))
        # These are reduced under all options, also those under which no stage computes them.
        reduced = {line.source for one in definition.passes for line in one.line_reductions}
        tables: dict[str, HostArray | int] = {"geometry": geometry}
        for (rank, kind), width in self.widths.items():
            count = self.counts[rank]
            begins = kind == "states" or (kind == "values" and rank in reduced)
            tables[f"{rank} {kind}"] = np.zeros((count, width)) if begins else count * width
        self._memory = Memory(starter.device, **tables)

    def shapes(self) -> Region:
        """The tensors as matrices."""
        return self._memory.region("geometry", "the table of matrices")

    def totals(self, rank: Rank, *, writable: bool = False) -> Region:
        """What is reduced along lines, a row each."""
        return self._memory.region(f"{rank} totals", f"the totals of {rank}", writable=writable)

    def values(self, rank: Rank, *, writable: bool = False) -> Region:
        """What stages compute for them."""
        return self._memory.region(f"{rank} values", f"the values of {rank}", writable=writable)

    def states(self, rank: Rank, *, writable: bool = False) -> Region:
        """Their states."""
        return self._memory.region(f"{rank} states", f"the states of {rank}", writable=writable)

    def read(self) -> tuple[Region, Region, Region, Region]:
        """What passes are given."""
        return self.shapes(), self.values("rows"), self.values("columns"), self.values("matrices")


class LineLaunch:
    """The tensors of a launch as matrices: their tiles, partial totals, and reductions."""

    def __init__(
        self,
        tables: DeviceLines,
        starter: Starter,
        reduce: Kernel,
        positions: Sequence[int],
        passes: Mapping[int, Pass],
    ) -> None:
        """
        Args:
            tables: of the optimizer's lines.
            starter: of the device.
            reduce: ``Kernels.reduce``.
            positions: of the launch's tensors.
            passes: those that are run, by their numbers.
        """
        self._tables = tables
        self._starter = starter
        self._reduce = reduce
        places = np.asarray(positions, np.int64)
        self._geometry = geometry = tables.geometry[places]
        tiles = tile_table(geometry)
        self.tile_count = len(tiles)
        across = -(-geometry[:, 2] // TILE_COLUMNS)
        down = -(-geometry[:, 1] // TILE_ROWS)
        offsets = partial_offsets(geometry)
        self._partials = offsets[-1].tolist()
        most = [
            max((len(kinds) for kinds in found), default=0)
            for found in (
                [one.row_kinds for one in passes.values()],
                [one.column_kinds for one in passes.values()],
            )
        ]
        starts = {
            f"{rank} starts": np.concatenate([[0], np.cumsum(line_counts(rank, geometry))]).astype(np.int64)
            for rank in RANKS
        }
        self._memory = Memory(
            starter.device,
            tiles=tiles,
            offsets=offsets,
            row_partials=self._partials[0] * most[0],
            column_partials=self._partials[1] * most[1],
            **starts,
        )
        self._along: dict[tuple[int, Rank], tuple[Reduction, int]] = {}
        self._of_lines: dict[int, list[tuple[Reduction, LineReduction]]] = {}
        for number, one in passes.items():
            if one.row_kinds:
                self._along[number, "rows"] = self._reduction_along(
                    "rows", across, one.row_first, one.row_kinds
                )
            if one.column_kinds:
                self._along[number, "columns"] = self._reduction_along(
                    "columns", down, one.column_first, one.column_kinds
                )
            self._of_lines[number] = self._reductions_of_lines(one.line_reductions, places)

    def starts(self, rank: Rank) -> Region:
        """Where each tensor's lines begin among those of the launch; one more for their end."""
        return self._memory.region(f"{rank} starts", f"the table of {rank}")

    def line_count(self, rank: Rank) -> int:
        """Lines of the launch's tensors."""
        return int(line_counts(rank, self._geometry).sum())

    def tiles(self) -> Region:
        """All tiles of the launch's tensors."""
        region = self._memory.region("tiles", "the table of tiles")
        return Region(region.name, region.address, region.nbytes, TILE.itemsize)

    def offsets(self) -> Region:
        """The first partial of each tensor's rows, and of its columns."""
        return self._memory.region("offsets", "the table of partial totals")

    def row_partials(self, width: int, *, writable: bool = False) -> Region:
        """The totals of rows in tiles, of a pass that forms ``width`` of each."""
        return self._partial("row_partials", "the tiles' totals of rows", self._partials[0] * width, writable)

    def column_partials(self, width: int, *, writable: bool = False) -> Region:
        """The totals of columns in tiles, of a pass that forms ``width`` of each."""
        what = "the tiles' totals of columns"
        return self._partial("column_partials", what, self._partials[1] * width, writable)

    def reduce(self, number: int, totals: Region, stride: int) -> None:
        """All that a pass reduces along lines, and after that of lines; ``totals`` are those of tensors."""
        for rank in RANKS:
            if (number, rank) in self._along:
                reduction, width = self._along[number, rank]
                partials = self.row_partials(width) if rank == "rows" else self.column_partials(width)
                results = self._tables.totals(rank, writable=True)
                reduction.run(partials, width, results, self._tables.widths[rank, "totals"])
        for reduction, line in self._of_lines[number]:
            to_matrices = line.over == "matrices"
            reduction.run(
                self._tables.values(line.source),
                self._tables.widths[line.source, "values"],
                self._tables.totals("matrices", writable=True) if to_matrices else totals,
                self._tables.widths["matrices", "totals"] if to_matrices else stride,
            )

    def _partial(self, name: str, what: str, count: int, writable: bool) -> Region:
        region = self._memory.region(name, what, writable=writable)
        return Region(what, region.address, 8 * count, 8, writable)

    def _reduction_along(
        self, rank: Rank, pieces: HostArray, first: int, kinds: Sequence[str]
    ) -> tuple[Reduction, int]:
        """Of a line's tiles to its total; and how many of each there are."""
        counts = line_counts(rank, self._geometry)
        lines = np.concatenate(
            [
                np.arange(begin, begin + count)
                for begin, count in zip(first_lines(rank, self._geometry), counts, strict=True)
            ]
        )
        columns = [Column(place, first + place, kind == "max_abs") for place, kind in enumerate(kinds)]
        reduction = Reduction(self._starter, self._reduce, np.repeat(pieces, counts), lines, columns)
        return reduction, len(kinds)

    def _reductions_of_lines(
        self, lines: Sequence[LineReduction], positions: HostArray
    ) -> list[tuple[Reduction, LineReduction]]:
        """One for all that are of the same lines and end in the same table."""
        together: dict[tuple[Rank, str], list[LineReduction]] = {}
        for line in lines:
            together.setdefault((line.source, line.over), []).append(line)
        return [
            (self._reduction_of_lines(source, over, found, positions), found[0])
            for (source, over), found in together.items()
        ]

    def _reduction_of_lines(
        self, source: Rank, over: str, lines: Sequence[LineReduction], positions: HostArray
    ) -> Reduction:
        columns = [Column(line.value, line.target, line.kind == "max_abs") for line in lines]
        begins, counts = first_lines(source, self._geometry), line_counts(source, self._geometry)
        places = positions
        if over == "matrices":
            matrices = self._geometry[:, 0]
            each = np.repeat(self._geometry[:, 1 if source == "rows" else 2], matrices)
            inner = np.arange(matrices.sum()) - np.repeat(np.cumsum(matrices) - matrices, matrices)
            places = np.repeat(first_lines("matrices", self._geometry), matrices) + inner
            begins = np.repeat(begins, matrices) + inner * each
            counts = each
        return Reduction(self._starter, self._reduce, counts, places, columns, begins)
