"""Reductions along lines, bit for bit against loops that follow the definition word for word."""

from __future__ import annotations

import math

import numpy as np
import pytest

from solvergen.runtime import reference_math
from solvergen.runtime.lines import (
    TILE_COLUMNS,
    TILE_ROWS,
    geometry_table,
    matrix_shape,
    partial_offsets,
    state_shape,
    tile_table,
)
from tests.support.bits import assert_same_bits
from tests.support.lines import by_rule_for_tensors, totals
from tests.support.reductions import KINDS, add, larger, terms_of

FUNCTIONS = {kind: getattr(reference_math, "sum_of" if kind == "sum" else kind) for kind in KINDS}
SHAPES = [
    (1, 1, 1),
    (1, 7, 1),
    (1, 1, 7),
    (2, 63, 129),
    (1, 64, 256),
    (1, 65, 257),
    (3, 70, 300),
    (1, 130, 600),
    (1, 0, 5),
    (1, 5, 0),
    (2, 0, 3),
    (0, 3, 4),
]


def elements(shape, dtype, seed=0):
    random = np.random.default_rng([*shape, seed])
    x = random.normal(size=shape) * 2.0 ** random.integers(-30, 30, shape)
    x[random.random(shape) < 0.1] = -0.0
    return x.astype(dtype)


def finish(kind, total, count):
    if kind == "norm2":
        return math.sqrt(total)
    return total if kind != "mean" else total / count if count else math.nan


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("rank", ["rows", "columns", "matrices"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_is_the_defined_one(kind, rank, shape, dtype):
    x, y = elements(shape, dtype), elements(shape, dtype, seed=1)
    found = FUNCTIONS[kind](*((x, y) if kind == "dot" else (x,)), rank)
    count, rows, columns = shape
    terms = [
        [terms_of(kind, r.tolist(), s.tolist()) for r, s in zip(a, b, strict=True)]
        for a, b in zip(x, y, strict=True)
    ]
    each = {"rows": columns, "columns": rows, "matrices": rows * columns}[rank]
    expected = [finish(kind, total, each) for total in totals(rank, terms, columns, kind)]
    assert found.dtype == np.float64
    assert (
        found.shape
        == {"rows": (count, rows, 1), "columns": (count, 1, columns), "matrices": (count, 1, 1)}[rank]
    )
    assert_same_bits(found.reshape(-1), np.array(expected, np.float64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", ["rows", "columns"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 70, 300), (2, 1, 9), (1, 5000, 2), (2, 0, 3), (0, 2, 2)])
def test_of_lines(kind, rank, shape):
    count, rows, columns = shape
    own = (count, rows, 1) if rank == "rows" else (count, 1, columns)
    x, y = elements(own, "float64"), elements(own, "float64", seed=1)
    combine = larger if kind == "max_abs" else add
    arguments = (x, y) if kind == "dot" else (x,)
    terms = terms_of(kind, x.reshape(-1).tolist(), y.reshape(-1).tolist())
    found = FUNCTIONS[kind](*arguments, "tensor", rank)
    assert type(found) is float
    expected = finish(kind, by_rule_for_tensors(terms, combine), len(terms))
    assert_same_bits(np.float64(found), np.float64(expected))
    each = own[1] * own[2]
    found = FUNCTIONS[kind](*arguments, "matrices", rank)
    expected = [
        finish(kind, by_rule_for_tensors(terms[i * each : (i + 1) * each], combine), each)
        for i in range(count)
    ]
    assert found.shape == (count, 1, 1)
    assert_same_bits(found.reshape(-1), np.array(expected, np.float64))


def test_long_lines():
    x = np.random.default_rng(0).normal(size=(1, 1, 257 * 256 + 3))
    expected = totals("rows", x.tolist(), x.shape[2], "sum")
    assert_same_bits(reference_math.sum_of(x, "rows").reshape(-1), np.array(expected))
    x = x.reshape(1, -1, 1)
    expected = totals("columns", x.tolist(), 1, "sum")
    assert_same_bits(reference_math.sum_of(x, "columns").reshape(-1), np.array(expected))


def test_special_values():
    x = np.full((1, 3, 256), -0.0)
    x[0, 1, 3] = np.nan
    assert_same_bits(reference_math.sum_of(x, "rows").reshape(-1)[[0, 2]], np.array([-0.0, -0.0]))
    assert_same_bits(reference_math.sum_of(x[:, :1, :255], "rows").reshape(-1), np.array([0.0]))
    assert np.isnan(reference_math.max_abs(x, "columns")[0, 0, 3])
    assert np.isnan(reference_math.max_abs(x, "rows")[0, 1, 0])
    assert_same_bits(reference_math.sum_of(x[:, :1], "columns").reshape(-1), np.zeros(256))


@pytest.mark.parametrize(
    ("view", "shape", "matrices", "rows", "columns"),
    [
        ("matrices", (), (1, 1, 1), (), ()),
        ("matrices", (5,), (1, 5, 1), (5,), (1,)),
        ("matrices", (4, 5), (1, 4, 5), (4,), (5,)),
        ("matrices", (2, 3, 4, 5), (6, 4, 5), (2, 3, 4), (2, 3, 5)),
        ("matrices", (0, 4, 5), (0, 4, 5), (0, 4), (0, 5)),
        ("leading", (), (1, 1, 1), (), ()),
        ("leading", (5,), (1, 5, 1), (5,), (1,)),
        ("leading", (2, 3, 4), (1, 2, 12), (2,), (3, 4)),
        ("trailing", (5,), (1, 1, 5), (1,), (5,)),
        ("trailing", (2, 3, 4), (1, 6, 4), (2, 3), (4,)),
    ],
)
def test_views(view, shape, matrices, rows, columns):
    assert matrix_shape(view, shape) == matrices
    assert state_shape(view, "rows", shape) == rows
    assert state_shape(view, "columns", shape) == columns
    assert math.prod(rows) == matrices[0] * matrices[1]
    assert math.prod(columns) == matrices[0] * matrices[2]
    assert math.prod(state_shape(view, "matrices", shape)) == matrices[0]


def test_tiles_cover_each_element_once():
    shapes = [(), (0, 3), (5, 0), (130,), (2, 65, 513), (64, 256), (1, 3)]
    geometry = geometry_table("matrices", shapes)
    seen = [np.zeros(geometry[i, :3], int) for i in range(len(shapes))]
    tiles = tile_table(geometry)
    for tile in tiles:
        part = seen[tile["tensor"]][
            tile["matrix"],
            tile["row"] : tile["row"] + tile["rows"],
            tile["column"] : tile["column"] + tile["columns"],
        ]
        assert part.shape == (tile["rows"], tile["columns"])
        assert tile["row"] % TILE_ROWS == 0
        assert tile["column"] % TILE_COLUMNS == 0
        assert 0 < tile["rows"] <= TILE_ROWS
        assert 0 < tile["columns"] <= TILE_COLUMNS
        part += 1
    assert all((one == 1).all() for one in seen)
    assert tiles.dtype.itemsize == 40
    assert geometry[:, 3].tolist() == [0, 1, 1, 6, 136, 266, 330]
    assert geometry[:, 4].tolist() == [0, 1, 4, 4, 5, 1031, 1287]
    assert geometry[:, 5].tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert geometry[:, 6].tolist() == [0, 2, 2, 1, 3, 2, 2]
    assert partial_offsets(geometry)[-1].tolist() == [1 + 130 + 130 * 3 + 64 + 1, 1 + 3 + 1026 * 2 + 256 + 3]
