"""The storage types of buffers, by name, and the type in which each is computed.

bfloat16 comes from ``ml_dtypes``, which is imported only when a bfloat16 array is met.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from solvergen.errors import BackendUnavailable


class StorageType(NamedTuple):
    """How a buffer is stored. ``code`` is the number that kernels know it by (``SG_PARAM``,
    ``SG_GRAD``); ``compute`` names the type of the arithmetic and of array states."""

    name: str
    code: int
    itemsize: int
    compute: str


STORAGE_TYPES: dict[str, StorageType] = {
    s.name: s
    for s in (
        StorageType("float32", 0, 4, "float32"),
        StorageType("float64", 1, 8, "float64"),
        StorageType("bfloat16", 2, 2, "float32"),
        StorageType("float16", 3, 2, "float32"),
    )
}


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype of a storage type. Raises BackendUnavailable where bfloat16 lacks ``ml_dtypes``."""
    if name != "bfloat16":
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise BackendUnavailable(
            "bfloat16 arrays need the package ml_dtypes; install it with `pip install ml_dtypes`"
        ) from None
    bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


def compute_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype in which buffers of the storage type ``name`` are computed: float32 or float64."""
    return np.dtype(STORAGE_TYPES[name].compute)


def rounding(name: str) -> Callable[[Any], Any]:
    """The function that rounds elements of the compute type to ``name`` and back, to nearest even.

    The identity where the two are the same type.
    """
    storage, compute = numpy_dtype(name), compute_dtype(name)
    if storage == compute:
        return _identity

    def rounded(values: Any) -> Any:
        return values.astype(storage).astype(compute)

    return rounded


def _identity(values: Any) -> Any:
    return values
