"""Weights in a plain safetensors file, by name, as other programs read and write them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from solvergen.errors import SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import quoted
from solvergen.runtime.snapshots.atomic import replacing, workshop
from solvergen.solver.files.reading import about

_METADATA = "__metadata__"
_OURS = frozenset({"solvergen", "solvergen_format"})


def is_plain(path: str) -> bool:
    """Whether this is a safetensors file, and not one of solvergen's. Raises SolverFileError."""
    if not path.lower().endswith(".safetensors") or not os.path.isfile(path):
        return False
    library = _library()
    with about(path, "can't be read"):
        try:
            with library.safe_open(path, "numpy", backend="pread") as file:
                return not _OURS & set(file.metadata() or {})
        except library.SafetensorError as error:
            raise SolverFileError(f"damaged or cut short: {error}") from error


def read(path: str, *, whole: bool = False) -> dict[str, HostArray]:
    """The arrays in a file by name: those of a model, and with ``whole`` those of whole numbers, too. Raises
    SolverFileError."""
    library = _library()
    with about(path, "can't be read"):
        try:
            with library.safe_open(path, "numpy", backend="pread") as file:
                types = {key: file.get_slice(key).get_dtype() for key in file.keys()}  # noqa: SIM118
                if odd := [key for key, name in types.items() if _is_odd(name)]:
                    raise SolverFileError(
                        f"{quoted(odd[0])} is {types[odd[0]]}; models hold {', '.join(STORAGE_TYPES)}"
                    )
                if "BF16" in types.values():
                    import ml_dtypes  # noqa: F401  gives NumPy the type
                found = {key: np.array(file.get_tensor(key)) for key in types}
        except (library.SafetensorError, ImportError, ValueError, TypeError) as error:
            raise SolverFileError(f"can't be read by the package safetensors: {error}") from error
    return {
        name: array
        for name, array in found.items()
        if array.dtype.name in STORAGE_TYPES or (whole and array.dtype.kind in "biu")
    }


def _is_odd(name: str) -> bool:
    """Whether numbers of this type, as safetensors calls it, are neither whole nor of a type of ours."""
    return not (name in ("BF16", "F16", "F32", "F64", "BOOL") or name.lstrip("IU").isdigit())


def write(path: str, arrays: Mapping[str, HostArray]) -> None:
    """Write them, whole or not at all. Raises SolverFileError."""
    if _METADATA in arrays:
        raise SolverFileError(f"{path}: safetensors files can't hold an array called {_METADATA}")
    library = _library()
    kept = {name: np.array(array, order="C", ndmin=0) for name, array in arrays.items()}
    tensors = {
        name: library.TensorSpec(
            dtype=array.dtype.name, shape=array.shape, data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in kept.items()
    }
    with about(path, "can't be written"), replacing(path) as temporary, workshop(temporary) as made:
        try:
            library.serialize_file(tensors, made, {"format": "pt"})
        except library.SafetensorError as error:
            raise SolverFileError(f"the package safetensors can't write it: {error}") from error


def _library() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise SolverFileError(
            f".safetensors files need the package safetensors ({error}): pip install 'safetensors>=0.8'"
        ) from error
    return safetensors
