"""Snapshots as safetensors files, read and written by the package safetensors, imported when first needed.

The package lays the files out and verifies that a header is sound: types, shapes and places that fit one
another and the file's size. What is said here is ours: one entry of the header's metadata holds the
document with its checksum, and a file has exactly the arrays that its document names.
``docs/snapshots.md`` has the details.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from solvergen.errors import BackendUnavailable, SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots.arrays import ArraySpec, bytes_of
from solvergen.runtime.snapshots.atomic import workshop
from solvergen.runtime.snapshots.container import Arrays
from solvergen.runtime.snapshots.document import FORMAT, refuse_newer

NAME = "safetensors"
SUFFIXES: tuple[str, ...] = (".safetensors",)

_CODES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16"}
# One entry, since the package writes several in any order: the same state would not give the same bytes.
_ENTRY = "solvergen"
_FORMER_ENTRIES = ("solvergen_format", "solvergen_sha256", "solvergen_document")
_FORMATS = tuple(map(str, range(1, FORMAT + 1)))
_SYSTEM_ERROR = re.compile(r"\(os error ([0-9]+)\)")


def write(path: str, arrays: Arrays, document: bytes, version: int) -> None:
    """Fill the new, empty file at ``path``; ``version`` is the document's.

    Raises:
        SnapshotError: safetensors isn't there, or more names than it allows (a header of 100 MB).
        OSError: as the system says.
    """
    library = _library()
    digest = hashlib.sha256(document).hexdigest()
    metadata = {_ENTRY: f"{version} {digest} {document.decode('ascii')}"}
    buffers = [np.asarray(bytes_of(array)) for _, array in arrays]  # alive while the package reads them
    tensors = {
        spec.key: library.TensorSpec(
            dtype=spec.dtype, shape=spec.shape, data_ptr=buffer.ctypes.data, data_len=buffer.nbytes
        )
        for (spec, _), buffer in zip(arrays, buffers, strict=True)
    }
    with workshop(path) as made:
        try:
            library.serialize_file(tensors, made, metadata)
        except library.SafetensorError as error:
            raise _translated(error) from error


def _translated(error: Exception) -> Exception:
    """The system's error that the package met, where it says so; its own otherwise."""
    if found := _SYSTEM_ERROR.search(str(error)):
        number = int(found[1])
        return OSError(number, os.strerror(number))
    return SnapshotError(f"the package safetensors can't write it, a .h5 file may hold it: {error}")


@contextmanager
def opened(path: str, file: BinaryIO, size: int) -> Iterator[Reader]:
    """Open ``path`` with the package, which verifies the header.

    Should another process replace the file in between, what is opened is another whole snapshot: its own
    document and checksums are verified all the same.

    Raises:
        SnapshotError: damaged, cut short, not written by solvergen, or by a newer one; no safetensors.
    """
    library = _library()
    try:
        opened_file = library.safe_open(path, "numpy", backend="pread")
    except library.SafetensorError as error:
        raise SnapshotError(f"damaged or cut short: {error}") from error
    with opened_file:
        yield Reader(library, opened_file)


class Reader:
    """An open safetensors snapshot (see ``container.Container``)."""

    def __init__(self, library: Any, file: Any) -> None:
        self._library = library
        self._file = file
        self.version, self.document = _document(file.metadata() or {})

    def check(self, specs: Mapping[str, ArraySpec]) -> None:
        """Whether the file holds exactly these arrays, as declared."""
        keys = set(self._file.keys())
        if missing := specs.keys() - keys:
            raise SnapshotError(f"arrays are missing: {listed(sorted(missing))}")
        if extra := keys - specs.keys():
            raise SnapshotError(f"arrays that do not belong there: {listed(sorted(extra))}")
        for key, spec in specs.items():
            entry = self._file.get_slice(key)
            if entry.get_dtype() != _CODES[spec.dtype] or tuple(entry.get_shape()) != spec.shape:
                raise SnapshotError(f"{quoted(key)} should be {spec}; the header says something else")

    def read(self, spec: ArraySpec) -> HostArray:
        """An array that ``check`` has passed."""
        try:
            dtype = numpy_dtype(spec.dtype)  # bfloat16: imports ml_dtypes, then the package has it from NumPy
            array: HostArray = self._file.get_tensor(spec.key)
        except BackendUnavailable as problem:
            raise SnapshotError(f"{spec.key}: {problem}") from problem
        except (self._library.SafetensorError, ValueError, MemoryError, OverflowError) as error:
            raise SnapshotError(f"{spec.key}: the package safetensors can't read {spec}: {error}") from error
        if (array.dtype, array.shape) != (dtype, spec.shape):
            raise SnapshotError(f"{spec.key}: the package safetensors read something else than {spec}")
        return array


def _document(metadata: Mapping[str, str]) -> tuple[int, bytes]:
    """The format and the document."""
    if set(metadata) & {_ENTRY, _FORMER_ENTRIES[0]} == set():
        raise SnapshotError(
            "a safetensors file that solvergen did not write: it has no solvergen metadata "
            "(`solvergen snapshot inspect` looks into it, and `convert` makes a model of it)"
        )
    former = _ENTRY not in metadata
    version = metadata[_FORMER_ENTRIES[0]] if former else metadata[_ENTRY].partition(" ")[0]
    if version.isascii() and version.isdigit() and len(version) < 10:
        refuse_newer(int(version))
    entries = set(_FORMER_ENTRIES) if former else {_ENTRY}
    if set(metadata) != entries:
        raise SnapshotError(f"the metadata has {listed(sorted(metadata))}, not {listed(sorted(entries))}")
    parts = [metadata[key] for key in _FORMER_ENTRIES] if former else metadata[_ENTRY].split(" ", 2)
    if len(parts) != 3 or version not in _FORMATS or not parts[2].isascii():
        raise SnapshotError("the metadata is damaged")
    document = parts[2].encode("ascii")
    if hashlib.sha256(document).hexdigest() != parts[1]:
        raise SnapshotError("the metadata does not match its checksum: the file is damaged")
    return int(version), document


def _library() -> Any:
    try:
        import safetensors
    except ImportError as error:
        raise SnapshotError(
            f".safetensors snapshots need the package safetensors ({error}): pip install 'safetensors>=0.8', "
            "or use a .h5 file"
        ) from error
    return safetensors
