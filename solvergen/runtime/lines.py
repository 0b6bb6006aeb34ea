"""Tensors read as matrices, and the tables of what belongs to their lines.

A rule reads every tensor as matrices of rows by columns, elements in C order, in one of four *views*:

``matrices``: the last two axes; a matrix for each index of those before. A vector is a matrix of one column.
``leading``: one matrix; the first axis counts its rows. A vector is one of one column.
``trailing``: one matrix; the last axis counts its columns. A vector is one of one row.
``blocks``: one matrix, whose rows are the blocks that the user divides the tensor into (``blocks.py``).

A tensor without axes is a matrix of one element. *Lines* are rows, columns and matrices. Those of all tensors
of an optimizer are numbered through, tensor by tensor, in C order: the row of a table that is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.errors import ArrayError, CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import RANK_OF_SHAPE, RANKS, Definition, Rank, View

TILE_ROWS = 64
"""Rows of a tile: each column of it is one run of additions."""

TILE_COLUMNS = 256
"""Columns of a tile: each row of it is combined by halving."""

GEOMETRY = 8
"""Columns of the table of geometries: matrices, rows and columns, the first row, column and matrix in the
tables, number of axes, nothing."""

MOST_LINES = 2**31 - 1
"""Lines of one rank that an optimizer's tensors may have: their numbers have 32 bits."""

_FIRST: Mapping[Rank, int] = {"rows": 3, "columns": 4, "matrices": 5}

_VIEW_OF_SHAPE: Mapping[str, View] = {"leading": "leading", "trailing": "trailing", "blocks": "blocks"}
"""Of the shapes of states that have views of their own."""

TILE = np.dtype(
    [
        ("tensor", np.int32),
        ("rows", np.int32),
        ("matrix", np.int64),
        ("row", np.int64),
        ("column", np.int64),
        ("columns", np.int32),
        ("pad", np.int32),
    ]
)
"""A part of a matrix: ``sg_tile`` in the kernels."""


def matrix_shape(view: View, shape: Sequence[int], blocks: int = 1) -> tuple[int, int, int]:
    """How many matrices a tensor is in this view, and their rows and columns. ``blocks`` is read by the view
    of that name alone, here and elsewhere."""
    size = math.prod(shape)
    if view == "blocks":
        return 1, blocks, size // max(1, blocks)
    if not shape:
        return 1, 1, 1
    if view == "leading":
        return 1, shape[0], math.prod(shape[1:])
    if view == "trailing":
        return 1, math.prod(shape[:-1]), shape[-1]
    if len(shape) == 1:
        return 1, size, 1
    return math.prod(shape[:-2]), shape[-2], shape[-1]


def lines_in(rank: Rank, matrices: tuple[int, int, int]) -> tuple[int, int, int]:
    """The shape of an array with a number for each line of such matrices, as references have it."""
    count, rows, columns = matrices
    if rank == "rows":
        return count, rows, 1
    return (count, 1, columns) if rank == "columns" else (count, 1, 1)


def state_shape(view: View, rank: Rank, shape: Sequence[int], blocks: int = 1) -> tuple[int, ...]:
    """The shape in which users see a state of lines: the tensor's, without what its lines go along; one axis
    of blocks."""
    shape = tuple(shape)
    if view == "blocks":
        return (blocks,)
    if len(shape) < 2:
        # A vector has a row or a column for each element, and one of the other.
        return () if rank == "matrices" else shape if _is_long(view, rank) else (1,) * len(shape)
    if view == "leading":
        return {"rows": shape[:1], "columns": shape[1:], "matrices": ()}[rank]
    if view == "trailing":
        return {"rows": shape[:-1], "columns": shape[-1:], "matrices": ()}[rank]
    return {"rows": shape[:-1], "columns": (*shape[:-2], shape[-1]), "matrices": shape[:-2]}[rank]


def shape_of_kind(kind: str, shape: Sequence[int], blocks: int = 1) -> tuple[int, ...] | None:
    """The shape of an array state of this kind, of a parameter of this shape and so many blocks; None for
    other states."""
    if kind == "param":
        return tuple(shape)
    if kind not in RANK_OF_SHAPE:
        return None
    return state_shape(_VIEW_OF_SHAPE.get(kind, "matrices"), RANK_OF_SHAPE[kind], shape, blocks)


def _is_long(view: View, rank: Rank) -> bool:
    return rank == ("columns" if view == "trailing" else "rows")


def geometry_table(
    view: View, shapes: Sequence[Sequence[int]], blocks: Sequence[int] | None = None
) -> HostArray:
    """The geometry of each tensor, a row of int64: see ``GEOMETRY``. ``blocks`` of each are 1 by default."""
    table = np.zeros((len(shapes), GEOMETRY), np.int64)
    for row, shape, count_of_blocks in zip(table, shapes, blocks or [1] * len(shapes), strict=True):
        row[:3] = matrix_shape(view, shape, count_of_blocks)
        row[6] = len(shape)
    count, rows, columns = table[:, 0], table[:, 1], table[:, 2]
    for place, lines in zip(_FIRST.values(), (count * rows, count * columns, count), strict=True):
        table[:, place] = np.cumsum(lines) - lines
    return table


def first_lines(rank: Rank, geometry: HostArray) -> HostArray:
    """Where the lines of each tensor of a table of geometries begin."""
    first: HostArray = geometry[:, _FIRST[rank]]
    return first


def line_counts(rank: Rank, geometry: HostArray) -> HostArray:
    """How many lines each tensor has."""
    per_matrix = {"rows": geometry[:, 1], "columns": geometry[:, 2], "matrices": 1}[rank]
    counts: HostArray = geometry[:, 0] * per_matrix
    return counts


def tile_table(
    geometry: HostArray, rows: int | HostArray = TILE_ROWS, columns: int = TILE_COLUMNS
) -> HostArray:
    """Tiles of at most so many rows and columns that cover the tensors of a launch, as ``TILE``.

    ``geometry`` has the rows of its tensors, in their order; ``rows`` may be a number for each. A tile's
    neighbour to the right comes next.
    """
    rows = np.broadcast_to(np.asarray(rows, np.int64), len(geometry))
    down, across = -(-geometry[:, 1] // rows), -(-geometry[:, 2] // columns)
    counts = geometry[:, 0] * down * across
    tiles = np.zeros(int(counts.sum()), TILE)
    tensor = np.repeat(np.arange(len(geometry)), counts)
    place = np.arange(len(tiles)) - (np.cumsum(counts) - counts)[tensor]
    above, tile_column = np.divmod(place, np.maximum(across, 1)[tensor])
    matrix, tile_row = np.divmod(above, np.maximum(down, 1)[tensor])
    tiles["tensor"], tiles["matrix"] = tensor, matrix
    tiles["row"], tiles["column"] = tile_row * rows[tensor], tile_column * columns
    tiles["rows"] = np.minimum(geometry[tensor, 1] - tiles["row"], rows[tensor])
    tiles["columns"] = np.minimum(geometry[tensor, 2] - tiles["column"], columns)
    return tiles


def partial_offsets(geometry: HostArray) -> HostArray:
    """Where the partial totals of each tensor's rows and columns begin: int64 [tensors, 2].

    Each row has one for each tile across, each column one for each tile down.
    """
    count, rows, columns = geometry[:, 0], geometry[:, 1], geometry[:, 2]
    of_rows = count * rows * -(-columns // TILE_COLUMNS)
    of_columns = count * columns * -(-rows // TILE_ROWS)
    offsets = np.zeros((len(geometry) + 1, 2), np.int64)
    offsets[1:, 0], offsets[1:, 1] = np.cumsum(of_rows), np.cumsum(of_columns)
    return offsets


@dataclass(frozen=True, eq=False)
class Table:
    """What belongs to the lines of one rank, float64, a row for each; at least one column each.

    In memory it lies by columns, ``stride`` numbers from one to the next, because whoever reads a column
    seldom wants the others.
    """

    totals: HostArray
    values: HostArray
    states: HostArray
    stride: int


def _table(count: int, widths: Sequence[int]) -> Table:
    """A table of zeros for so many lines, with so many totals, values and states of each."""
    # An odd number of cache lines: columns begin in different sets of the first cache, whatever the count.
    stride = (-(-count // 8) | 1) * 8
    totals, values, states = (np.zeros((max(1, width), stride))[:, :count].T for width in widths)
    return Table(totals, values, states, stride)


class LineTables:
    """The tables of an optimizer's lines in host memory."""

    def __init__(
        self,
        definition: Definition,
        shapes: Sequence[Sequence[int]],
        blocks: Sequence[int] | None = None,
    ) -> None:
        """``shapes`` and ``blocks``: those of all tensors, by position; see ``geometry_table``."""
        self.view = definition.view
        self.shapes = [tuple(shape) for shape in shapes]
        self.geometry = geometry_table(definition.view, shapes, blocks)
        self.names = definition.line_states
        widths: dict[Rank, tuple[int, int]] = {
            "rows": (definition.n_row_totals, definition.n_row_values),
            "columns": (definition.n_column_totals, definition.n_column_values),
            "matrices": (definition.n_matrix_totals, definition.n_matrix_values),
        }
        self.tables: dict[Rank, Table] = {}
        for rank in RANKS:
            count = int(line_counts(rank, self.geometry).sum())
            if count > MOST_LINES:
                raise ArrayError(
                    f"the parameters have {count} {rank}, but {definition.class_name} keeps track of "
                    f"{MOST_LINES} at most; give some of them to another optimizer"
                )
            totals, values = widths[rank]
            self.tables[rank] = _table(count, (totals, values, len(self.names[rank])))

    def matrices(self, position: int) -> tuple[int, int, int]:
        """The matrices of a tensor."""
        count, rows, columns = self.geometry[position, :3].tolist()
        return count, rows, columns

    def state(self, rank: Rank, position: int, column: int) -> HostArray:
        """A state of a tensor's lines, as references have it: a view of its table."""
        first = int(first_lines(rank, self.geometry)[position])
        shape = lines_in(rank, self.matrices(position))
        lines: HostArray = self.tables[rank].states[first : first + math.prod(shape), column]
        return lines.reshape(shape)

    def read_column(self, rank: Rank, lines: slice, column: int) -> HostArray:
        """A copy of a state of some lines."""
        some: HostArray = self.tables[rank].states[lines, column].copy()
        return some

    def read(self) -> dict[Rank, HostArray]:
        """Copies of the tables of states, without columns that nothing uses."""
        return {rank: self.tables[rank].states[:, : len(self.names[rank])].copy() for rank in RANKS}

    def write(self, states: Mapping[Rank, HostArray]) -> None:
        """Overwrite them."""
        for rank in RANKS:
            target = self.tables[rank].states[:, : len(self.names[rank])]
            if states[rank].shape != target.shape:
                raise CompilerBug(f"states of {rank} of the shape {states[rank].shape}, not {target.shape}")
        for rank in RANKS:
            self.tables[rank].states[:, : len(self.names[rank])] = states[rank]


class LineStates:
    """Where the states of lines lie in the tables of all tensors, and in which shape users see them."""

    def __init__(
        self,
        definition: Definition,
        shapes: Sequence[Sequence[int]],
        blocks: Sequence[int] | None = None,
    ) -> None:
        self._view = definition.view
        self._shapes = [tuple(shape) for shape in shapes]
        self._blocks = [1] * len(shapes) if blocks is None else list(blocks)
        self._geometry = geometry_table(definition.view, shapes, blocks)
        self._place: dict[str, tuple[Rank, int]] = {
            name: (rank, column) for rank in RANKS for column, name in enumerate(definition.line_states[rank])
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._place)

    def __contains__(self, name: object) -> bool:
        return name in self._place

    def shape(self, name: str, position: int) -> tuple[int, ...]:
        """The shape of a state of a tensor."""
        return state_shape(self._view, self._place[name][0], self._shapes[position], self._blocks[position])

    def empty(self) -> dict[Rank, HostArray]:
        """Tables of zeros, for all lines."""
        columns = dict.fromkeys(RANKS, 0)
        for rank, _ in self._place.values():
            columns[rank] += 1
        return {
            rank: np.zeros((int(line_counts(rank, self._geometry).sum()), columns[rank])) for rank in RANKS
        }

    def get(self, tables: Mapping[Rank, HostArray], name: str, position: int) -> HostArray:
        """A copy of a state of a tensor."""
        rank, column = self._place[name]
        lines: HostArray = tables[rank][self._lines(rank, position), column]
        copy: HostArray = lines.reshape(self.shape(name, position)).copy()
        return copy

    def read(self, read: Callable[[Rank, slice, int], HostArray], name: str, position: int) -> HostArray:
        """A copy of a state of a tensor. ``read`` is ``Workspace.read_line_state``."""
        rank, column = self._place[name]
        lines: HostArray = read(rank, self._lines(rank, position), column)
        shaped: HostArray = lines.reshape(self.shape(name, position))
        return shaped

    def put(self, tables: Mapping[Rank, HostArray], name: str, position: int, value: Any) -> None:
        """Overwrite it in the tables."""
        rank, column = self._place[name]
        tables[rank][self._lines(rank, position), column] = np.reshape(value, -1)

    def _lines(self, rank: Rank, position: int) -> slice:
        first = int(first_lines(rank, self._geometry)[position])
        return slice(first, first + int(line_counts(rank, self._geometry)[position]))
