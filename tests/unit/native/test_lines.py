"""Rules with lines on the cpu backend against NumPy's, to the bit, and its reductions against loops."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from solvergen import optimizers
from solvergen.errors import OptimizerError
from solvergen.runtime.backends import cpu, cpu_lines, cpu_reductions
from solvergen.runtime.backends.cpu_reductions import ColumnReducer, column_pieces
from solvergen.runtime.lines import _table, geometry_table, partial_offsets
from solvergen.runtime.native.build import load
from solvergen.runtime.native.library import library
from tests.support.bits import assert_same_bits
from tests.support.line_rule import liner, package
from tests.support.lines import by_rule_for_tensors
from tests.support.reductions import add, larger
from tests.unit.native.support import values

MIXES = [("float64", "float64"), *itertools.product(("float32", "bfloat16", "float16"), repeat=2)]
SHAPES = [
    (),
    (5,),
    (1, 7),
    (64, 256),
    (65, 257),
    (3, 70, 300),
    (0, 4),
    (4, 0),
    (2, 0, 3),
    (300, 3),
    (70, 129),
    (70, 128),
    (2, 2100),
    (2, 3, 4, 5),
    (1000,),
]

EDGES = [
    # Rows: of four, of one, of a tile and what is left of it. Columns: narrow, wide, of a whole tile, of
    # more than are kept.
    *itertools.product((3, 4, 66), (2, 5, 17, 128, 129, 256, 300)),
    *[(rows, columns) for rows in (1, 5) for columns in (4096, 4400, 8700)],
    *[(1024,), (1030,), (4160, 1), (5000,), (2100, 2), (700, 8), (260, 16)],
    *[(40, 3, 3), (9, 1, 1), (3, 2, 700)],
]

GUARDED = """
name: guarded
summary: A rule for tests.
hyperparameters:
  lr: {default: 0.1, min: 0}
options:
  squares: {default: false}
state:
  c: {init: 1, shape: columns}
update:
  - c = c + max_abs(grad, columns)
  - when: squares
    do:
      - c = c + sum(grad*grad, columns) + mean(norm1(grad, rows), matrices)
  - param = param - lr*grad/sqrt(c)
"""

VIEWS = """
name: {name}
summary: A rule for tests.
hyperparameters:
  lr: {{default: 0.1, min: 0}}
state:
  v: {{init: 1, shape: {kind}}}
update:
  - v = 0.5*v + max_abs(grad*grad, {kind}) + norm1(v)
  - param = param - lr*grad/sqrt(v)
"""


def assert_equal(a: Any, b: Any) -> None:
    """Both optimizers are in the same state, to the bit."""
    for name, view in a.state.items():
        for tensor, value in view.items():
            assert_same_bits(np.asarray(value), np.asarray(b.state[name][tensor]))
    for tensor, value in a.params.items():
        assert_same_bits(value, b.params[tensor])


def both(cls: type[Any], shapes: Any, dtype: str, **settings: Any) -> tuple[Any, Any]:
    params = [values(shape, dtype, i) for i, shape in enumerate(shapes)]
    return tuple(cls([p.copy() for p in params], backend=backend, **settings) for backend in ("numpy", "cpu"))


@pytest.mark.parametrize(
    ("param", "grad", "scaled"),
    [(*mix, True) for mix in MIXES] + [("float32", "float32", False)],
)
def test_every_mix_of_dtypes_has_the_bits_of_the_reference(param: str, grad: str, scaled: bool) -> None:
    a, b = both(liner(), SHAPES, param, scaled=scaled)
    for t in range(3):
        gradients: list[Any] = [values(shape, grad, 100 * t + i) for i, shape in enumerate(SHAPES)]
        if t == 1:
            gradients[3] = gradients[5] = None
        assert a.step(gradients)
        assert b.step(gradients)
        assert_equal(a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_shapes_at_which_kernels_take_another_way(dtype: str) -> None:
    a, b = both(liner(), EDGES, dtype)
    for t in range(2):
        gradients = [values(shape, dtype, 100 * t + i) for i, shape in enumerate(EDGES)]
        a.step(gradients)
        b.step(gradients)
        assert_equal(a, b)


@pytest.mark.parametrize("name", ["Adafactor", "CAME", "SM3", "AdamP"])
def test_shipped_rules_at_these_shapes(name: str) -> None:
    a, b = both(getattr(optimizers, name), EDGES, "float32")
    gradients = [values(shape, "float32", i) for i, shape in enumerate(EDGES)]
    a.step(gradients)
    b.step(gradients)
    assert_equal(a, b)


@pytest.mark.parametrize("name", ["Adafactor", "CAME", "AdamP", "SGDP", "RowwiseAdagrad", "Liner"])
def test_nothing_is_read_that_the_step_has_not_computed(name: str) -> None:
    """Nor does anything hang on what is left out for tensors of fewer than two axes."""
    shapes = [(), (9,), (5000,), (70, 300), (5000, 1), (1, 5000), (2, 3, 4)]
    a, b = both(liner() if name == "Liner" else getattr(optimizers, name), shapes, "float32")
    workspace = b._workspace
    for t in range(2):
        for table in workspace.lines.tables.values():
            table.totals[...] = table.values[...] = np.nan
        workspace.totals[...] = workspace.values[...] = np.nan
        gradients = [values(shape, "float32", 100 * t + i) for i, shape in enumerate(shapes)]
        a.step(gradients)
        b.step(gradients)
        assert_equal(a, b)


@pytest.mark.parametrize("name", ["AdamP", "SGDP"])
def test_vectors_have_no_totals_that_only_matrices_need(name: str) -> None:
    shapes = [(3000,), (30, 40), ()]
    _, opt = both(getattr(optimizers, name), shapes, "float32")
    opt.step([values(shape, "float32", i) for i, shape in enumerate(shapes)])
    rows = opt._workspace.lines.tables["rows"].totals
    assert not rows[:3000].any()
    assert rows[3000:3030].all()
    assert not rows[3030:].any()
    assert not opt._workspace.totals[[0, 2]].any()
    assert opt._workspace.totals[1].all()


@pytest.mark.parametrize("squares", [False, True])
def test_a_reduction_that_options_leave_out(squares: bool) -> None:
    a, b = both(package(GUARDED, "guarded").Guarded, EDGES, "float32", squares=squares)
    gradients = [values(shape, "float32", i) for i, shape in enumerate(EDGES)]
    for _ in range(2):
        a.step(gradients)
        b.step(gradients)
        assert_equal(a, b)


@pytest.mark.parametrize("kind", ["rows", "columns", "matrices", "leading", "trailing"])
def test_every_view(kind: str) -> None:
    spec = VIEWS.format(name=f"of_{kind}", kind=kind)
    cls = getattr(package(spec, f"of_{kind}"), f"Of{kind.capitalize()}")
    a, b = both(cls, SHAPES, "float32")
    for t in range(2):
        gradients = [values(shape, "float32", 100 * t + i) for i, shape in enumerate(SHAPES)]
        a.step(gradients)
        b.step(gradients)
        assert_equal(a, b)


def test_options_of_groups_differ() -> None:
    params = [values(shape, "float32", i) for i, shape in enumerate(SHAPES)]
    made = []
    for backend in ("numpy", "cpu"):
        own = [p.copy() for p in params]
        groups = [{"params": own[::2], "scaled": False}, {"params": own[1::2]}]
        made.append(liner()(groups, backend=backend))
    gradients = [values(shape, "float32", 50 + i) for i, shape in enumerate(SHAPES)]
    for opt in made:
        opt.step([gradients[::2], gradients[1::2]])
    assert_equal(*made)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite(bad: float) -> None:
    a, b = both(liner(), [(70, 300), (9,)], "float32")
    gradients = [values((70, 300), "float32", 2), values((9,), "float32", 3)]
    for _ in range(2):
        a.step(gradients)
        b.step(gradients)
        assert_equal(a, b)
        gradients[0][65, 270] = bad


def test_any_number_of_threads_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "CHUNK_SIZE", 1 << 10)
    monkeypatch.setattr(cpu_lines, "CHUNK_SIZE", 1 << 10)
    monkeypatch.setattr(cpu_lines, "PIECE_LINES", 16)
    monkeypatch.setattr(cpu_reductions, "MANY_TERMS", 4)
    monkeypatch.setattr(cpu_reductions, "PIECE_COLUMNS", 100)
    shapes = [(500, 700), (), (3000,), (2, 130, 90), (3, 5000)]
    gradients = [[values(s, "float32", 9 * t + i) for i, s in enumerate(shapes)] for t in range(2)]
    expected, _ = both(liner(), shapes, "float32")
    for own in gradients:
        expected.step(own)
    for helpers in (0, 1, 3):
        monkeypatch.setattr(library(), "helpers", lambda helpers=helpers: helpers)
        _, found = both(liner(), shapes, "float32")
        for own in gradients:
            found.step(own)
        assert_equal(expected, found)


@pytest.mark.parametrize("shape", [(64 * 257 + 1, 3), (64 * 4097, 1), (2, 256 * 257)])
def test_lines_of_very_many_tiles(shape: tuple[int, ...]) -> None:
    a, b = both(liner(), [shape], "float32")
    gradients = [values(shape, "float32", 1)]
    a.step(gradients)
    b.step(gradients)
    assert_equal(a, b)


@pytest.mark.parametrize("largest", [False, True])
def test_columns_are_reduced_as_defined(largest: bool) -> None:
    shapes = [(130, 17), (0, 3), (3, 64 * 300, 2), (5,)]
    geometry = geometry_table("matrices", shapes)
    offsets = partial_offsets(geometry)
    random = np.random.default_rng(0)
    terms = random.normal(size=(int(offsets[-1, 1]), 2)) * 2.0 ** random.integers(-30, 30, (1,))
    if largest:
        terms = np.abs(terms)
    out = np.full((int((geometry[:, 0] * geometry[:, 2]).sum()), 3), 7.0)
    pieces = column_pieces(geometry, offsets[:-1, 1])
    ColumnReducer(terms, pieces, [largest, largest], out, 1).run()
    expected = []
    for (matrices, rows, columns), start in zip(
        geometry[:, :3].tolist(), offsets[:-1, 1].tolist(), strict=True
    ):
        down = -(-rows // 64)
        own = terms[start : start + matrices * down * columns].reshape(matrices, down, columns, 2)
        for matrix in own:
            expected += [
                [by_rule_for_tensors(matrix[:, c, j].tolist(), larger if largest else add) for j in (0, 1)]
                for c in range(columns)
            ]
    assert_same_bits(out[:, 1:], np.array(expected))
    assert (out[:, 0] == 7.0).all()


@pytest.mark.parametrize("text", ["const long long sg_tiles = 16;", "const long long sg_lines_size = 80;"])
def test_kernels_of_other_tables_are_refused(text: str) -> None:
    with pytest.raises(OptimizerError, match=r"kernel of AdamP .* another version .* solvergen build"):
        cpu_lines.check_tables("AdamP", load({"kernel.c": text}))


@pytest.mark.parametrize("count", [0, 1, 8, 497, 504, 505, 512, 4088, 4096])
def test_columns_of_tables_begin_in_different_sets_of_the_cache(count: int) -> None:
    totals = _table(count, (12, 1, 0)).totals
    assert totals.shape == (count, 12)
    distance = totals.strides[1]
    assert distance >= 8 * count
    assert len({distance * column // 64 % 64 for column in range(12)}) == 12
