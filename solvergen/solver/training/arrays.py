"""Arrays on the host or on a GPU, as far as the Solver touches them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

HostArray = np.ndarray[Any, Any]


def to_host(array: Any) -> HostArray:
    """A copy on the host."""
    if isinstance(array, np.ndarray):
        return np.array(array, order="C", copy=True)
    copied: HostArray = array.get()  # CuPy
    return copied


def copy_into(array: Any, host: HostArray) -> None:
    """Overwrite a live array with what has its shape."""
    converted = np.asarray(host.reshape(array.shape), dtype=array.dtype, order="C")
    if isinstance(array, np.ndarray):
        array[...] = converted
    else:
        array.set(converted)


def magnitudes(array: Any) -> tuple[float, float]:
    """The sum of the magnitudes and the sum of the squares, in float64."""
    values = to_host(array).astype(np.float64)
    return float(np.abs(values).sum()), float((values * values).sum())
