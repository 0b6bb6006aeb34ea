"""Equality of bits and distances between them, against values worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from solvergen.verify.bits import differing, same_bits, show, ulp_distance

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: np.dtype(d).name)


@each_dtype
def test_signed_zeros_differ(dtype: Any) -> None:
    assert differing(np.array([0.0, 1.0], dtype), np.array([-0.0, 1.0], dtype)).tolist() == [0]
    assert same_bits(np.array([-0.0], dtype), np.array([-0.0], dtype))


@each_dtype
def test_a_signalling_nan_is_one(dtype: Any) -> None:
    quiet = np.array([math.nan] * 9, dtype)
    signalling = quiet.copy()
    infinite = np.array([math.inf], dtype).view(f"u{quiet.itemsize}")[0]
    signalling.view(f"u{quiet.itemsize}")[:] = infinite + 1
    assert same_bits(quiet, signalling)  # and a warning is an error here
    assert ulp_distance(signalling[0], dtype(1.0)) is None


@each_dtype
def test_nans_are_one_whatever_their_payload(dtype: Any) -> None:
    nan = np.array([math.nan, math.nan], dtype)
    unsigned = f"u{nan.itemsize}"
    other = nan.copy()
    other.view(unsigned)[:] ^= np.array([1, 1 << (8 * nan.itemsize - 1)], unsigned)
    assert nan.tobytes() != other.tobytes()
    assert same_bits(nan, other)
    assert differing(nan, np.array([math.inf, math.nan], dtype)).tolist() == [0]


@each_dtype
def test_the_last_place_counts(dtype: Any) -> None:
    one = np.array([1.0, 1.0], dtype)
    next_to_it = one.copy()
    next_to_it.view(f"u{one.itemsize}")[1] += 1
    assert differing(one, next_to_it).tolist() == [1]
    assert ulp_distance(one[1], next_to_it[1]) == 1


def test_places_are_flat_and_shapes_without_dimensions_work() -> None:
    assert differing(np.float32([[1, 2], [3, 4]]), np.float32([[1, 0], [3, 0]])).tolist() == [1, 3]
    assert differing(np.array(1.0), np.array(2.0)).tolist() == [0]
    assert same_bits(np.zeros((0, 3)), np.zeros((0, 3)))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(ValueError, match="float32"):
        differing(np.zeros(2, np.float32), np.zeros(2))
    with pytest.raises(ValueError, match="bit by bit"):
        differing(np.zeros(2), np.zeros(3))


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (1.0, 1.0, 0),
        (0.0, -0.0, 0),
        (2.0**-149, -(2.0**-149), 2),
        (1.0, 1.0 - 2.0**-24, 1),
        (1.0, 2.0, 2**23),
        (3.4028234663852886e38, math.inf, 1),
        (-math.inf, -3.4028234663852886e38, 1),
        (math.nan, 1.0, None),
    ],
)
def test_ulp_distance(a: float, b: float, distance: int | None) -> None:
    assert ulp_distance(np.float32(a), np.float32(b)) == distance
    assert ulp_distance(np.float32(b), np.float32(a)) == distance


def test_numbers_are_shown_in_decimal_and_hexadecimal() -> None:
    assert show(np.float32(0.1)) == "0.1  0x1.99999ap-4"
    assert show(0.1) == "0.1  0x1.999999999999ap-4"
    assert show(np.float32("nan")) == "nan"
    assert show(np.float32(-0.0)) == "-0.0  -0x0p+0"
    assert show(1024.0) == "1024.0  0x1p+10"
    assert show(np.array(1.5, ml_dtypes.bfloat16)[()]) == "1.5  0x1.8p+0"
