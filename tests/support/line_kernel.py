"""A CUDA text with rows and columns, from a context that is written by hand, and slow loops for it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np

from solvergen.emit.render import render
from solvergen.runtime.arrays import HostArray
from tests.support.contexts import pass_context
from tests.support.reductions import add, by_loops, larger

TILE_ROWS = 64
TILE_COLUMNS = 256

TILE = np.dtype(
    [
        ("tensor", np.int32),
        ("rows", np.int32),
        ("matrix", np.int64),
        ("row", np.int64),
        ("column", np.int64),
        ("columns", np.int32),
        ("padding", np.int32),
    ]
)


def _number(name: str, index: int) -> SimpleNamespace:
    return SimpleNamespace(name=name, index=index, guard=None)


def _reduction(column: int, kind: str, *operands: str) -> SimpleNamespace:
    return SimpleNamespace(column=column, kind=kind, operands=operands, guard=None)


def _buffer(name: str, index: int, *, stored: str = "") -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        index=index,
        type=f"sg_{name}",
        guard=None,
        pointer=f"sg_{name}_at",
        value=name,
        loaded=True,
        load_guard=None,
        stored=bool(stored),
        store_guard=None,
        result=stored,
    )


def _input(name: str, table: str, index: int) -> SimpleNamespace:
    return SimpleNamespace(name=name, table=table, index=index, guard=None)


def _lines(
    rank: str, inputs: Sequence[SimpleNamespace], body: Sequence[str], outputs: Sequence[SimpleNamespace]
) -> SimpleNamespace:
    line, first, per_matrix = {
        "matrices": ("matrix", 5, None),
        "rows": ("row", 3, 1),
        "columns": ("column", 4, 2),
    }[rank]
    return SimpleNamespace(
        rank=rank,
        line=line,
        first=first,
        per_matrix=per_matrix,
        number=1,
        guard=None,
        inputs=inputs,
        body=[f"        {line}" for line in body],
        outputs=outputs,
    )


TILES = pass_context(
    suffix="_0",
    walk="tiles",
    row_values=(_number("r", 0),),
    column_values=(_number("c", 0),),
    matrix_values=(_number("m", 0),),
    buffers=[_buffer("param", 0, stored="moved"), _buffer("grad", 1)],
    body=[
        "        const sg_real x = grad * r + c * m;",
        "        const sg_real moved = sg_round_param(param + x);",
    ],
    row_reductions=[_reduction(0, "dot", "x", "grad"), _reduction(1, "max_abs", "grad")],
    column_reductions=[_reduction(0, "dot", "x", "grad"), _reduction(1, "max_abs", "grad")],
)

FLAT = pass_context(
    number=1,
    suffix="_1",
    row_values=(_number("r", 0),),
    column_values=(_number("c", 0),),
    matrix_values=(_number("m", 0),),
    buffers=[_buffer("param", 0, stored="moved"), _buffer("grad", 1)],
    body=[
        "        const sg_real x = grad * r + c * m;",
        "        const sg_real moved = sg_round_param(param + x);",
    ],
)

FLAT_REDUCING = pass_context(
    **{**vars(FLAT), "number": 2, "suffix": "_2", "reductions": [_reduction(0, "sum", "x")]}
)

STAGE = SimpleNamespace(
    number=1,
    guard=None,
    inputs=(),
    body=(),
    outputs=(),
    lines=[
        _lines(
            "matrices",
            [_input("old", "sg_matrix_states", 0), _input("count", "sg_geometry", 1)],
            ["const double m = old + sg_matrix_totals[0] / count;"],
            [_input("m", "sg_matrix_values", 0), _input("m", "sg_matrix_states", 0)],
        ),
        _lines(
            "rows",
            [_input("m", "sg_matrix_values", 0), _input("wide", "sg_wide", 0), _input("v", "sg_values", 0)],
            ["const double r = sg_row_totals[1] * wide + m + v;"],
            [_input("r", "sg_row_values", 0), _input("r", "sg_row_states", 0)],
        ),
        _lines(
            "columns",
            [_input("m", "sg_matrix_values", 0), _input("old", "sg_column_states", 0)],
            ["const double c = sg_column_totals[0] - m * old;"],
            [_input("c", "sg_column_values", 0)],
        ),
    ],
)


@functools.cache
def text() -> str:
    """The text."""
    kernel = SimpleNamespace(
        preamble="/* A text for tests. */",
        n_buffers=2,
        n_scalars=1,
        n_wide=1,
        n_values=1,
        n_reductions=1,
        n_states=1,
        n_shared=1,
        copies=(),
        has_lines=True,
        n_row_totals=2,
        n_row_values=1,
        n_row_states=1,
        n_column_totals=2,
        n_column_values=2,
        n_column_states=1,
        n_matrix_totals=1,
        n_matrix_values=1,
        n_matrix_states=1,
        functions=(),
        staged=True,
        passes=(TILES, FLAT, FLAT_REDUCING),
        stages=(STAGE,),
    )
    return render("cuda/kernel.cu.j2", kernel=kernel)


def geometry(shapes: Sequence[tuple[int, int, int]]) -> HostArray:
    """The table of tensors seen as matrices."""
    table = np.zeros((len(shapes), 8), np.int64)
    table[:, :3] = np.array(shapes).reshape(-1, 3)
    counts = (table[:, 0] * table[:, 1], table[:, 0] * table[:, 2], table[:, 0])
    for column, count in enumerate(counts, start=3):
        table[:, column] = np.cumsum(count) - count
    return table


def tiles(shapes: Sequence[tuple[int, int, int]]) -> HostArray:
    """Every tile of these tensors."""
    found = [
        (tensor, min(TILE_ROWS, rows - row), matrix, row, column, min(TILE_COLUMNS, columns - column), 0)
        for tensor, (matrices, rows, columns) in enumerate(shapes)
        for matrix in range(matrices)
        for row in range(0, rows, TILE_ROWS)
        for column in range(0, columns, TILE_COLUMNS)
    ]
    return np.array(found, TILE)


Combine = Callable[[float, float], float]


def row_total(terms: Sequence[float], combine: Combine = add) -> float:
    """The total of the terms of a row: tiles of 256 lanes, whose values are terms again."""
    partials = [
        halved(terms[start : start + TILE_COLUMNS], combine) for start in range(0, len(terms), TILE_COLUMNS)
    ]
    return partials[0] if len(partials) == 1 else by_loops(partials, combine)


def column_total(terms: Sequence[float], combine: Combine = add) -> float:
    """The total of the terms of a column: up to 64 one after the other, whose values are terms again."""
    partials = []
    for start in range(0, len(terms), TILE_ROWS):
        value = 0.0
        for term in terms[start : start + TILE_ROWS]:
            value = combine(value, term)
        partials.append(value)
    return partials[0] if len(partials) == 1 else by_loops(partials, combine)


def halved(terms: Sequence[float], combine: Combine = add) -> float:
    """Lanes combined by halving."""
    lanes = [*terms, *[0.0] * (TILE_COLUMNS - len(terms))]
    half = TILE_COLUMNS // 2
    while half:
        lanes = [combine(lanes[i], lanes[i + half]) for i in range(half)]
        half //= 2
    return lanes[0]


__all__ = ["add", "column_total", "geometry", "larger", "row_total", "text", "tiles"]
