"""Kernels of rules with rows and columns, executed: the bits of loops that follow the language."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from solvergen.errors import KernelFault
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.buffers import address_of
from solvergen.runtime.kernel_interface import chunk_table
from tests.support.bits import assert_same_bits, same_bits
from tests.support.line_kernel import column_total, geometry, larger, row_total, text, tiles
from tests.support.ptx import COMPILERS, execute, needs_nvrtc
from tests.support.staged_rule import placed

pytestmark = needs_nvrtc

Shape = tuple[int, int, int]

SHAPES: tuple[Shape, ...] = (
    (1, 3, 5),
    (3, 65, 2),
    (1, 1, 1),
    (2, 9, 257),
    (1, 129, 33),
    (2, 1, 513),
    (1, 0, 4),
    (1, 70, 4),
    (2, 67, 16),
    (1, 20, 64),
    (1, 9, 128),
    (2, 3, 256),
    (1, 10, 264),
    (1, 2, 288),
)
"""Narrow and wide, of whole words and not; the last tiles of a row are narrow, too."""


def ptx(kernel_text: str, dtype: str) -> str:
    defines = {"float32": 0, "float64": 1}[dtype]
    macros = {"SG_PARAM": defines, "SG_GRAD": defines}
    return COMPILERS[0].compile(kernel_text, "compute_90", macros, extra_flags=("-lineinfo",)).ptx


class Tensors:
    """Tensors with gradients, and numbers of their lines."""

    def __init__(self, shapes: Sequence[Shape], dtype: str, miss: int = 0) -> None:
        rng = np.random.default_rng(5)
        self.shapes = shapes
        self.geometry = geometry(shapes)
        self.real = np.dtype(dtype).type

        def some(shape: Any) -> HostArray:
            values: HostArray = rng.standard_normal(shape) * 10.0 ** rng.integers(-5, 5, shape)
            return values

        self.params = [placed(some(shape).astype(dtype), miss) for shape in shapes]
        self.grads = [placed(some(shape).astype(dtype), miss) for shape in shapes]
        counts = [
            sum(b * r for b, r, c in shapes),
            sum(b * c for b, r, c in shapes),
            sum(b for b, *_ in shapes),
        ]
        self.row_values, self.column_values, self.matrix_values = (
            some((count, width)) for count, width in zip(counts, (1, 2, 1), strict=True)
        )
        self.pointers = np.array(
            [[address_of(p), address_of(g)] for p, g in zip(self.params, self.grads, strict=True)], np.uint64
        )
        self.rows = np.zeros(len(shapes), np.int32)
        self.table = np.zeros((1, 1), dtype)
        self.positions = np.arange(len(shapes), dtype=np.int32)
        self.computed = np.zeros((len(shapes), 1))

    def moves(self) -> list[HostArray]:
        """What is added to each parameter: ``grad * r + c * m`` in the compute type."""
        result = []
        for tensor, (matrices, rows, columns) in enumerate(self.shapes):
            first = self.geometry[tensor, 3:6]
            r, c, m = (
                values[begin : begin + count, 0].astype(self.real)
                for values, begin, count in zip(
                    (self.row_values, self.column_values, self.matrix_values),
                    first,
                    (matrices * rows, matrices * columns, matrices),
                    strict=True,
                )
            )
            with np.errstate(over="ignore"):
                result.append(
                    self.grads[tensor] * r.reshape(matrices, rows, 1)
                    + c.reshape(matrices, 1, columns) * m.reshape(matrices, 1, 1)
                )
        return result

    def run_tiles(self, kernel: str, blocks: int | None = None) -> tuple[HostArray, HostArray]:
        """The partials of rows and of columns."""
        across, down = ([-(-s[axis] // size) for s in self.shapes] for axis, size in ((2, 256), (1, 64)))
        counts = np.array(
            [(b * r * across[i], b * c * down[i]) for i, (b, r, c) in enumerate(self.shapes)], np.int64
        )
        offsets = np.ascontiguousarray(np.cumsum(counts, axis=0) - counts)
        row_partials, column_partials = (np.full((n, 2), np.nan) for n in counts.sum(axis=0))
        table = tiles(self.shapes)
        execute(
            kernel,
            self.pointers,
            self.rows,
            self.table,
            table,
            np.int64(len(table)),
            self.positions,
            self.computed,
            self.geometry,
            self.row_values,
            self.column_values,
            self.matrix_values,
            offsets,
            row_partials,
            column_partials,
            blocks=blocks or len(table),
            threads=256,
            name="sg_pass_0",
            unwritten=(row_partials, column_partials),
            pointed=(*self.params, *self.grads),
        )
        return row_partials, column_partials

    def run_flat(self, kernel: str, name: str) -> HostArray:
        """The partials of chunks."""
        chunks = chunk_table([p.size for p in self.params], 4096)
        partials = np.full((len(chunks), 1), np.nan)
        execute(
            kernel,
            self.pointers,
            self.rows,
            self.table,
            chunks,
            np.int64(len(chunks)),
            self.positions,
            self.computed,
            partials,
            self.geometry,
            self.row_values,
            self.column_values,
            self.matrix_values,
            blocks=len(chunks),
            threads=256,
            name=name,
            pointed=(*self.params, *self.grads),
        )
        return partials


def wanted_partials(tensors: Tensors) -> tuple[HostArray, HostArray]:
    """Those of rows and columns, tile by tile."""
    rows, columns = [], []
    for x, g in zip(tensors.moves(), tensors.grads, strict=True):
        matrices, height, width = x.shape
        wide, grad = x.astype(np.float64), g.astype(np.float64)
        for matrix, row, start in itertools.product(range(matrices), range(height), range(0, width, 256)):
            part = (matrix, row, slice(start, start + 256))
            rows.append(
                (
                    row_total((wide[part] * grad[part]).tolist()),
                    row_total(np.abs(grad[part]).tolist(), larger),
                )
            )
        for matrix, column, start in itertools.product(range(matrices), range(width), range(0, height, 64)):
            below = (matrix, slice(start, start + 64), column)
            columns.append(
                (
                    column_total((wide[below] * grad[below]).tolist()),
                    column_total(np.abs(grad[below]).tolist(), larger),
                )
            )
    return np.array(rows), np.array(columns)


@pytest.mark.parametrize("miss", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pass_over_tiles(dtype: str, miss: int) -> None:
    tensors = Tensors(SHAPES, dtype, miss)
    wanted = wanted_partials(tensors)
    params = [p + x for p, x in zip(tensors.params, tensors.moves(), strict=True)]
    found = tensors.run_tiles(ptx(text(), dtype))
    for a, b in zip(found, wanted, strict=True):
        assert_same_bits(a, b)
    for a, b in zip(tensors.params, params, strict=True):
        assert_same_bits(a, b)


def test_negative_zeros() -> None:
    """Of a row of 256 of them the total is one, of a shorter row it is not: a lane without a term is +0.0."""
    tensors = Tensors(((1, 2, 256), (1, 2, 255), (1, 3, 1), (1, 2, 4), (1, 2, 64), (1, 2, 512)), "float32")
    for grad in tensors.grads:
        grad[...] = -0.0
    np.abs(tensors.column_values, out=tensors.column_values)
    np.abs(tensors.matrix_values, out=tensors.matrix_values)
    wanted = wanted_partials(tensors)
    assert np.signbit(wanted[0][:, 0]).any()
    assert not np.signbit(wanted[0][:, 0]).all()
    for a, b in zip(tensors.run_tiles(ptx(text(), "float32")), wanted, strict=True):
        assert_same_bits(a, b)


def test_blocks_that_take_several_tiles() -> None:
    tensors = Tensors(SHAPES, "float32")
    wanted = wanted_partials(tensors)
    for a, b in zip(tensors.run_tiles(ptx(text(), "float32"), blocks=2), wanted, strict=True):
        assert_same_bits(a, b)


@pytest.mark.parametrize("miss", [0, 1])
@pytest.mark.parametrize("name", ["sg_pass_1", "sg_pass_2"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_pass_over_chunks_reads_the_values_of_lines(dtype: str, name: str, miss: int) -> None:
    tensors = Tensors((*SHAPES, (3, 40, 50)), dtype, miss)
    moves = tensors.moves()
    params = [p + x for p, x in zip(tensors.params, moves, strict=True)]
    found = tensors.run_flat(ptx(text(), dtype), name)
    for a, b in zip(tensors.params, params, strict=True):
        assert_same_bits(a, b)
    if name == "sg_pass_2":
        flat = [x.reshape(-1).astype(np.float64) for x in moves]
        chunks = [x[start : start + 4096] for x in flat for start in range(0, x.size, 4096)]
        lanes = [np.zeros(256) for _ in chunks]
        for lane, chunk in zip(lanes, chunks, strict=True):
            for start in range(0, chunk.size, 256):
                part = chunk[start : start + 256]
                lane[: part.size] += part
        assert_same_bits(found[:, 0], np.array([row_total(lane.tolist()) for lane in lanes]))


def test_stages_of_lines() -> None:
    """Each line of each tensor of the launch, and no other; not in the order of positions."""
    shapes = (*SHAPES, (2, 40, 30))
    taking = np.array([7, 0, 6, 3, 1], np.int32)
    table = geometry(shapes)
    rng = np.random.default_rng(3)
    counts = {
        "row": sum(b * r for b, r, c in shapes),
        "column": sum(b * c for b, r, c in shapes),
        "matrix": sum(b for b, *_ in shapes),
    }
    widths = {"row": (2, 1, 1), "column": (2, 2, 1), "matrix": (1, 1, 1)}
    lines = {
        rank: [rng.standard_normal((count, width)) for width in widths[rank]]
        for rank, count in counts.items()
    }
    wanted = {rank: [array.copy() for array in arrays] for rank, arrays in lines.items()}
    wide, values = rng.standard_normal((2, 1)), rng.standard_normal((len(shapes), 1))
    rows = np.array([0, 1, 1, 0, 1], np.int32)
    for row, position in zip(rows, taking, strict=True):
        matrices, height, width, first_row, first_column, first_matrix = table[position, :6].tolist()
        for matrix in range(first_matrix, first_matrix + matrices):
            totals, computed, states = wanted["matrix"]
            with np.errstate(divide="ignore"):
                m = states[matrix, 0] + totals[matrix, 0] / np.float64(height)
            computed[matrix, 0] = states[matrix, 0] = m
            within = matrix - first_matrix
            totals, computed, states = wanted["row"]
            for line in range(first_row + within * height, first_row + (within + 1) * height):
                r = totals[line, 1] * wide[row, 0] + m + values[position, 0]
                computed[line, 0] = states[line, 0] = r
            totals, computed, states = wanted["column"]
            for line in range(first_column + within * width, first_column + (within + 1) * width):
                computed[line, 0] = totals[line, 0] - m * states[line, 0]
    kernel = ptx(text(), "float32")
    unused = [np.zeros((len(shapes), 1)) for _ in range(5)]
    for own, plural in (("matrix", "matrices"), ("row", "rows"), ("column", "columns")):
        factor = {"matrix": (0,), "row": (0, 1), "column": (0, 2)}[own]
        lengths = [int(np.prod([shapes[i][axis] for axis in factor])) for i in taking]
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        execute(
            kernel,
            rows,
            taking,
            wide,
            *unused[:3],
            np.float64(0),
            values,
            *unused[3:],
            table,
            *lines["matrix"],
            *(() if own == "matrix" else lines[own]),
            starts,
            np.int64(len(taking)),
            blocks=2,
            threads=256,
            name=f"sg_{plural}_stage_1",
        )
    for rank, arrays in lines.items():
        for a, b in zip(arrays, wanted[rank], strict=True):
            assert_same_bits(a, b)


WRONG = {
    "the last halving is dropped": (
        "for (; sg_apart > 0; sg_apart /= 2)",
        "for (; sg_apart > 1; sg_apart /= 2)",
    ),
    "halving among others": ("__shfl_xor_sync(0xffffffffu, sg_total", "__shfl_up_sync(0xffffffffu, sg_total"),
    "a thread hands on what it keeps": ("sg_upper ? sg_low : sg_high, sg_apart", "sg_low, sg_apart"),
    "the halves of a word change places": (
        "sg_kind::sg_next(sg_upper ? sg_high : sg_low, sg_taken)",
        "sg_kind::sg_next(sg_upper ? sg_low : sg_high, sg_taken)",
    ),
    "elements of a word aren't combined": (
        "#pragma unroll\n    for (int sg_left = sg_n; sg_left > 1; sg_left /= 2) {\n        sg_total =",
        "#pragma unroll\n    for (int sg_left = sg_n; sg_left > 9; sg_left /= 2) {\n        sg_total =",
    ),
    "words of a thread in another order": (
        "for (int sg_half = SG_SHARE / sg_n / 2; sg_half > 0; sg_half /= 2)",
        "for (int sg_half = 1; sg_half < SG_SHARE / sg_n; sg_half *= 2)",
    ),
    "a missing barrier": (
        "        __syncthreads();\n        if (sg_thread < sg_this.columns) {",
        "        if (sg_thread < sg_this.columns) {",
    ),
    "a missing barrier before the next terms": (
        "        __syncthreads(); /* before the next terms",
        "        /* before",
    ),
    "a row is dropped": (
        "if (sg_first == 0 && sg_down < sg_this.rows)",
        "if (sg_first == 0 && sg_down + 1 < sg_this.rows)",
    ),
    "a batch is dropped": ("sg_b < sg_this.rows; sg_b", "sg_b + sg_batch < sg_this.rows; sg_b"),
    "beyond the tile's columns": (" && sg_along < sg_this.columns", ""),
    "beyond the tile's rows": ("if (sg_down < sg_this.rows && sg_along", "if (sg_along"),
    "rows of another thread": ("sg_b + (sg_thread >> sg_bits)", "sg_b + (sg_thread >> 5)"),
    "terms of another column": ("sg_word / 32 * sg_n + sg_thread % sg_n", "sg_thread % sg_n"),
    "misaligned words": ("(sg_address & 15u) == 0 && sg_width % SG_LANES == 0", "true"),
    "a wrong edge of tiles": ("#define SG_TILE_ROWS 64", "#define SG_TILE_ROWS 32"),
    "rows and columns change places": ("sg_width = sg_geometry[2]", "sg_width = sg_geometry[1]"),
    "a column begins anew": (
        "        const int sg_down = sg_b",
        "        if (sg_b > 0) { sg_column_total_0 = 0.0; }\n        const int sg_down = sg_b",
    ),
    "values of another row": ("sg_geometry[3] + sg_row_above", "sg_row_above"),
    "values of another column": ("sg_geometry[4] + sg_this.matrix", "sg_this.matrix"),
    "values of another matrix": ("sg_geometry[5] + sg_this.matrix", "sg_this.matrix"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_shows(what: str) -> None:
    right, wrong = WRONG[what]
    changed = text().replace(right, wrong)
    assert changed != text()
    tensors = Tensors(((1, 3, 5), (2, 69, 3), (1, 9, 258), (1, 2, 264)), "float64")
    wanted = wanted_partials(tensors)
    params = [p + x for p, x in zip(tensors.params, tensors.moves(), strict=True)]
    try:
        found = [*tensors.run_tiles(ptx(changed, "float64")), *tensors.params]
    except KernelFault:
        return
    assert not all(map(same_bits, found, [*wanted, *params]))
