"""Terms reduced to totals in C, against loops over Python floats."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from solvergen.errors import CompilerBug
from solvergen.runtime.backends import cpu_reductions
from solvergen.runtime.backends.cpu_reductions import Reducer
from solvergen.runtime.native.build import load
from solvergen.runtime.reductions import total_of_terms
from tests.support.bits import assert_same_bits
from tests.support.reductions import add, by_loops, larger
from tests.unit.native.test_pool import CONTROL, FLUSH, TOWARDS_ZERO

SIZES = [0, 1, 2, 255, 256, 257, 511, 512, 4095, 4096, 4097, 8192, 3 * 4096 + 5]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.7e308, -1.7e308, 1.0]


def drawn(count: int, columns: int = 1, seed: int = 0) -> Any:
    """Terms of many magnitudes, whose sum depends on the order."""
    random = np.random.default_rng([seed, count])
    return random.standard_normal((count, columns)) * 10.0 ** random.integers(-9, 9, (count, columns))


def reduced(terms: Any, *, largest: bool = False) -> float:
    """One segment of one column."""
    out = np.full((1, 1), 7.0)
    offsets = np.array([0, len(terms)], np.int64)
    Reducer(terms, offsets, np.zeros(1, np.int32), [(0, 0, largest)], out).run()
    return float(out[0, 0])


def by_python(terms: Any, *, largest: bool = False) -> float:
    """The same, one term after the other. One term is not reduced again."""
    values = terms[:, 0].tolist()
    return values[0] if len(values) == 1 else by_loops(values, larger if largest else add)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("count", [*SIZES, 33 * 4096 + 1])
def test_every_size(count: int, largest: bool) -> None:
    terms = drawn(count)
    assert_same_bits(reduced(terms, largest=largest), by_python(terms, largest=largest))


def test_the_order_shows() -> None:
    terms = drawn(4097)
    assert reduced(terms) != float(np.sum(terms)) != sum(terms[:, 0].tolist())


@pytest.mark.parametrize("largest", [False, True])
def test_three_levels(largest: bool) -> None:
    """More chunks than one chunk has terms. NumPy's own order is tested against the loops elsewhere."""
    terms = np.resize(drawn(100_003), (4096 * 4096 + 4098, 1))
    terms[-1] = 1e300
    assert_same_bits(
        reduced(terms, largest=largest), total_of_terms("max_abs" if largest else "sum", terms[:, 0])
    )


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("count", [1, 2, 257, 4097])
def test_special_values(count: int, largest: bool) -> None:
    random = np.random.default_rng(count)
    for _ in range(20):
        terms = np.where(
            random.random((count, 1)) < 0.05, random.choice(SPECIAL, (count, 1)), np.abs(drawn(count))
        )
        assert_same_bits(reduced(terms, largest=largest), by_python(terms, largest=largest))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("count", [2, 300, 5000])
def test_nan_wins_wherever_it_is(count: int, largest: bool) -> None:
    for place in (0, 1, count // 2, count - 1):
        terms = np.full((count, 1), np.inf)
        terms[place] = np.nan
        assert np.isnan(reduced(terms, largest=largest))


def test_a_negative_zero_alone_stays() -> None:
    for largest in (False, True):
        assert_same_bits(reduced(np.full((1, 1), -0.0), largest=largest), -0.0)
        assert_same_bits(reduced(np.full((2, 1), -0.0), largest=largest), 0.0)
        assert_same_bits(reduced(np.zeros((0, 1)), largest=largest), 0.0)


@pytest.mark.parametrize("helpers", [0, 3])
@pytest.mark.parametrize("mode", [0, FLUSH, FLUSH | TOWARDS_ZERO])
def test_segments_columns_and_places(helpers: int, mode: int) -> None:
    """Every segment has its row, every column its place and its operation, whatever the program's mode."""
    control = load({"control.c": CONTROL})
    control.get_control.restype = ctypes.c_uint64
    control.set_control.argtypes = (ctypes.c_uint64,)
    counts = [*SIZES, 0, 3, 0]
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    terms = drawn(int(offsets[-1]), 4)
    terms[::7] = 3e-310
    places = np.random.default_rng(1).permutation(len(counts) + 2)[: len(counts)].astype(np.int32)
    out = np.full((len(counts) + 2, 6), np.pi)
    columns = [(3, 1, False), (0, 4, True), (1, 2, False)]
    reducer = Reducer(terms, offsets, places, columns, out)
    reducer._units = np.arange(len(counts) + 1, dtype=np.int64)
    reducer._arguments = (*reducer._arguments[:2], reducer._units.ctypes.data, len(counts), helpers)
    before = control.get_control()
    try:
        control.set_control(before | mode)
        reducer.run()
    finally:
        control.set_control(before)
    expected = np.full_like(out, np.pi)
    for i, place in enumerate(places):
        for from_, to, largest in columns:
            segment = terms[offsets[i] : offsets[i + 1], from_ : from_ + 1]
            expected[place, to] = by_python(segment, largest=largest)
    assert_same_bits(out, expected)


def test_many_terms_go_to_the_pool_in_units(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_reductions, "MANY_TERMS", 1 << 10)
    counts = np.random.default_rng(2).integers(0, 300, 40)
    offsets = np.append(0, np.cumsum(counts)).astype(np.int64)
    terms, out = drawn(int(offsets[-1]), 2), np.zeros((40, 2))
    places = np.arange(40, dtype=np.int32)
    reducer = Reducer(terms, offsets, places, [(0, 0, False), (1, 1, True)], out)
    assert len(reducer._units) > 5
    reducer.run()
    for i in range(40):
        rows = terms[offsets[i] : offsets[i + 1]]
        assert_same_bits(out[i], [by_python(rows), by_python(rows[:, 1:], largest=True)])


@pytest.mark.parametrize(
    ("columns", "places", "offsets"),
    [
        ([(2, 0, False)], [0], [0, 5]),
        ([(0, 3, False)], [0], [0, 5]),
        ([(-1, 0, False)], [0], [0, 5]),
        ([(0, 0, False)], [2], [0, 5]),
        ([(0, 0, False)], [-1], [0, 5]),
        ([(0, 0, False)], [0], [0, 6]),
    ],
)
def test_what_lies_outside_is_refused(columns: Any, places: Any, offsets: Any) -> None:
    with pytest.raises(CompilerBug):
        Reducer(
            np.zeros((5, 2)),
            np.array(offsets, np.int64),
            np.array(places, np.int32),
            columns,
            np.zeros((2, 3)),
        )
