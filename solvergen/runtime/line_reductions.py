"""Reductions along the lines of matrices, and of what belongs to lines, in the one order of all backends.

Terms are float64 [matrices, rows, columns]. A matrix is cut into tiles of 64 rows and 256 columns; the last
ones are smaller. In a tile, the terms of a row are lanes, +0.0 where there are fewer than 256, of which the
upper half is added to the lower until one is left; those of a column are added from the top, beginning with
+0.0. A line's tile results, from left to right or from top to bottom, are terms of the rule for tensors
(``solvergen.runtime.reductions``): one is the total itself. A matrix's total is that of its rows' totals; of
numbers that belong to lines, in their order, the total is likewise that of the rule for tensors.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.definition import Rank
from solvergen.runtime.lines import TILE_COLUMNS, TILE_ROWS
from solvergen.runtime.ordering import CHUNK_TERMS, LANES, Combine, combining, halved

Over = Literal["tensor", "rows", "columns", "matrices"]
"""What a reduction has one result for."""

Source = Literal["elements", "rows", "columns", "matrices"]
"""What its terms belong to."""

BLOCK = 1 << 20
"""Lanes that are combined at a time."""


def line_totals(rank: Rank, terms: HostArray, source: Source, largest: bool) -> HostArray:
    """The totals along the lines of a rank, shaped as what belongs to them."""
    if source == "elements" and rank == "columns":
        return _columns(terms, largest)
    if source == "elements":
        terms = _rows(terms, largest)
        if rank == "rows":
            return terms
    count, rows, columns = terms.shape
    return totals_along(terms.reshape(count, rows * columns), largest).reshape(count, 1, 1)


def totals_along(terms: HostArray, largest: bool) -> HostArray:
    """The total of each row of terms [lines, n] by the rule for tensors, float64 [lines]."""
    combine = combining(largest)
    if terms.shape[1] == 1:
        return terms[:, 0]
    while terms.shape[1] > 1:
        chunks = [
            _chunk(terms[:, start : start + CHUNK_TERMS], combine)
            for start in range(0, terms.shape[1], CHUNK_TERMS)
        ]
        terms = np.stack(chunks, axis=1)
    return terms[:, 0] if terms.shape[1] else np.zeros(len(terms))


def _chunk(terms: HostArray, combine: Combine) -> HostArray:
    """The totals of one chunk of each line."""
    count, length = terms.shape
    width = min(LANES, _power_of_two(length))  # lanes without terms are +0.0: one stands for all
    result = np.zeros(count)
    step = max(1, BLOCK // width)
    for first in range(0, count, step):
        block = terms[first : first + step]
        lanes = np.zeros((len(block), width))
        for start in range(0, length, LANES):
            row = block[:, start : start + LANES]
            lanes[:, : row.shape[1]] = combine(lanes[:, : row.shape[1]], row)
        result[first : first + step] = halved(lanes, combine)
    return result if width == LANES else combine(result, 0.0)


def _rows(terms: HostArray, largest: bool) -> HostArray:
    combine = combining(largest)
    count, rows, columns = terms.shape
    flat = terms.reshape(count * rows, columns)
    across = -(-columns // TILE_COLUMNS)
    partials = np.zeros((count * rows, across))
    for tile in range(across):
        part = flat[:, tile * TILE_COLUMNS : (tile + 1) * TILE_COLUMNS]
        width = _power_of_two(part.shape[1])
        step = max(1, BLOCK // width)
        for first in range(0, len(part), step):
            block = part[first : first + step]
            lanes = np.zeros((len(block), width))
            lanes[:, : block.shape[1]] = block
            if width < TILE_COLUMNS:  # each then meets a lane without a term, which makes -0.0 to +0.0
                lanes = combine(lanes, 0.0)
            partials[first : first + step, tile] = halved(lanes, combine)
    return totals_along(partials, largest).reshape(count, rows, 1)


def _columns(terms: HostArray, largest: bool) -> HostArray:
    combine = combining(largest)
    count, rows, columns = terms.shape
    down = -(-rows // TILE_ROWS)
    partials = np.zeros((count, down, columns))
    for row in range(min(rows, TILE_ROWS)):
        own = terms[:, row::TILE_ROWS]  # the row of this number of each tile that has it
        partials[:, : own.shape[1]] = combine(partials[:, : own.shape[1]], own)
    lines = np.moveaxis(partials, 1, 2).reshape(count * columns, down)
    return totals_along(lines, largest).reshape(count, 1, columns)


def _power_of_two(count: int) -> int:
    """The smallest that isn't below ``count``."""
    return 1 << max(0, count - 1).bit_length()
