"""Arrays on the host or on a GPU, as far as the Solver touches them itself."""

from __future__ import annotations

from typing import Any

import numpy as np

HostArray = np.ndarray[Any, Any]


def to_host(array: Any) -> HostArray:
    """A copy on the host."""
    if isinstance(array, np.ndarray):
        return np.array(array, order="C", copy=True)
    copied: HostArray = _of_cupy(array).get()
    return copied


def can_take(array: Any) -> bool:
    """Whether ``copy_into`` can overwrite it."""
    return not isinstance(array, np.ndarray) or array.flags.writeable


def holds(array: HostArray, host: HostArray) -> bool:
    """Whether ``copy_into`` would change nothing."""
    return to_host(array).tobytes() == _converted(host, array).tobytes()


def copy_into(array: Any, host: HostArray) -> None:
    """Overwrite a live array with what has its shape."""
    if isinstance(array, np.ndarray):
        array[...] = _converted(host, array)
    else:
        there = _of_cupy(array)
        there.set(_converted(host, there))


def _of_cupy(array: Any) -> Any:
    """An array on a GPU as CuPy's, over the same memory: nets may have those of other libraries."""
    if hasattr(array, "get") and hasattr(array, "set"):
        return array
    import cupy

    return cupy.from_dlpack(array)


def _converted(host: HostArray, like: Any) -> HostArray:
    """In the shape and type of ``like``; NumPy's own ``ascontiguousarray`` would give a number an axis."""
    return np.asarray(host.reshape(like.shape), dtype=like.dtype, order="C")


def magnitudes(array: Any) -> tuple[float, float]:
    """The sum of the magnitudes and the sum of the squares, in float64."""
    values = to_host(array).astype(np.float64)
    return float(np.abs(values).sum()), float((values * values).sum())
