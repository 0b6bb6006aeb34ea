"""The data of a dense net: whatever arrays they come in, checked once, as rows of its own type."""

from __future__ import annotations

from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.solver.net.error import NetError
from solvergen.solver.net.protocol import is_real


def inputs_from(given: Any, dtype: Any) -> HostArray:
    """A row for each example. Raises NetError."""
    array = _numbers(given, "inputs")
    if not array.ndim or not array.size:
        raise NetError(f"inputs have the shape {array.shape}: there must be rows of numbers")
    return np.ascontiguousarray(array, dtype).reshape(len(array), -1)


def values_from(given: Any, dtype: Any, count: int, width: int) -> HostArray:
    """Targets that are numbers: ``width`` of them for each of ``count`` examples. Raises NetError."""
    array = _numbers(given, "targets")
    _check_count(array, count)
    if array.size != count * width:
        raise NetError(
            f"targets have the shape {array.shape}, and the last layer puts out {width} numbers for each row"
        )
    return np.ascontiguousarray(array, dtype).reshape(count, width)


def labels_from(given: Any, count: int, width: int) -> HostArray:
    """Targets that are labels: a whole number below ``width`` for each of ``count`` examples. Raises
    NetError."""
    array = _numbers(given, "targets")
    _check_count(array, count)
    if array.dtype.kind not in "iu" or array.size != count:
        raise NetError(
            f"targets for the loss 'softmax' are one whole number a row, not of dtype {array.dtype} and the "
            f"shape {array.shape}"
        )
    low, high = int(array.min()), int(array.max())
    if low < 0 or high >= width:
        raise NetError(
            f"targets go from {low} to {high}, but the last layer puts out {width} numbers: they must be "
            f"from 0 to {width - 1}"
        )
    return array.reshape(count).astype(np.intp)


def _check_count(targets: HostArray, count: int) -> None:
    rows = len(targets) if targets.ndim else 1
    if rows != count:
        raise NetError(f"{count} rows of inputs, but {rows} of targets")


def _numbers(given: Any, what: str) -> HostArray:
    if hasattr(given, "mask"):
        raise NetError(f"{what} are a masked array: fill it, or leave out what is masked")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise NetError(f"{what} can't be made an array: {error}") from error
    if not is_real(array.dtype):
        raise NetError(
            f"{what} must be real numbers, not of dtype {array.dtype}: convert them, x.astype(float)"
        )
    return array
