"""Equality of bits: signed zeros are distinguished, NaNs are equal whatever their payload."""

from __future__ import annotations

from typing import Any

import numpy as np

_WORDS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def words(array: Any) -> np.ndarray[Any, Any]:
    """The bits of an array as integers, every NaN as one and the same."""
    array = np.ascontiguousarray(array)
    nan = np.isnan(array.astype(np.float64))
    return np.where(nan, np.array(-1).astype(_WORDS[array.itemsize]), array.view(_WORDS[array.itemsize]))


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same dtype, shape and bits."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and bool((words(a) == words(b)).all())


def assert_same_bits(a: Any, b: Any) -> None:
    """Fail with the first element that differs."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype, f"{a.dtype} and {b.dtype}"
    assert a.shape == b.shape, f"{a.shape} and {b.shape}"
    different = np.flatnonzero(words(a) != words(b))
    if different.size:
        i = different[0]
        raise AssertionError(
            f"{different.size} of {a.size} elements differ, first {i}: "
            f"{a.reshape(-1)[i]!r} and {b.reshape(-1)[i]!r}"
        )
