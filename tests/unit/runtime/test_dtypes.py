from __future__ import annotations

import sys

import ml_dtypes
import numpy as np
import pytest

from solvergen.errors import BackendUnavailable
from solvergen.runtime import dtypes
from tests.support.bits import assert_same_bits


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"):
        yield


def every_pattern(step):
    """float32 values over all exponents and signs, infinities and NaNs, and the neighbours of ties."""
    base = np.arange(0, 2**32, step, dtype=np.uint64).astype(np.uint32)
    ties = (np.arange(0, 2**32, 2**16, dtype=np.uint64)[:, None] + np.array([0x7FFF, 0x8000, 0x8001])).astype(
        np.uint32
    )
    return np.concatenate([base, ties.reshape(-1)]).view(np.float32)


def test_bfloat16_rounds_to_nearest_even():
    values = every_pattern(9973)
    bits = values.view(np.uint32).astype(np.uint64)
    expected = (
        (((bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16) & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    )
    expected = np.where(np.isnan(values), np.float32(np.nan), expected)
    assert_same_bits(dtypes.rounding("bfloat16")(values), expected)


def test_float16_rounds_to_nearest_even():
    values = every_pattern(9973)
    rounded = dtypes.rounding("float16")(values)
    grid = (
        np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float64)
    )  # all finite values from 0 up
    grid = np.append(grid, 65536.0)  # what would come next: rounding to it means infinity
    for value, result in zip(values[::7].astype(np.float64), rounded[::7].astype(np.float64), strict=True):
        if np.isnan(value) or np.isinf(value):
            assert np.isnan(result) if np.isnan(value) else result == value
            continue
        size = abs(value)
        above = min(int(np.searchsorted(grid, size)), len(grid) - 1)
        below = max(above - 1, 0) if grid[above] > size else above
        distance_below, distance_above = size - grid[below], grid[above] - size
        if size >= 65536.0:
            nearest = len(grid) - 1
        elif distance_below != distance_above:
            nearest = below if distance_below < distance_above else above
        else:
            nearest = below if below % 2 == 0 else above
        expected = np.inf if nearest == len(grid) - 1 else grid[nearest]
        assert abs(result) == expected
        assert np.signbit(result) == np.signbit(value)


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_rounding_to_the_compute_type_is_the_identity(name):
    values = np.ones(3, name)
    assert dtypes.rounding(name)(values) is values


def test_the_table():
    assert [(s.name, s.code, s.itemsize, s.compute) for s in dtypes.STORAGE_TYPES.values()] == [
        ("float32", 0, 4, "float32"),
        ("float64", 1, 8, "float64"),
        ("bfloat16", 2, 2, "float32"),
        ("float16", 3, 2, "float32"),
    ]
    for s in dtypes.STORAGE_TYPES.values():
        assert dtypes.numpy_dtype(s.name).itemsize == s.itemsize
        assert dtypes.numpy_dtype(s.name).name == s.name
        assert dtypes.compute_dtype(s.name).name == s.compute
    assert dtypes.numpy_dtype("bfloat16") == ml_dtypes.bfloat16


def test_without_ml_dtypes_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(BackendUnavailable, match="pip install ml_dtypes"):
        dtypes.numpy_dtype("bfloat16")
    assert dtypes.numpy_dtype("float16") == np.float16
