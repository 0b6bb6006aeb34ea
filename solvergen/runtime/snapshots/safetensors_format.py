"""Snapshots as safetensors files.

Eight bytes, little endian: the length of the header. The header: JSON, padded with spaces so that the
data begins at a multiple of eight. The data: the arrays, one after the other. That is little enough to
be written and read here, without the package safetensors: streaming, with bfloat16, and with every
field checked before it is used. ``docs/snapshots.md`` describes what solvergen adds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

from solvergen.errors import SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots import strict_json
from solvergen.runtime.snapshots.arrays import (
    ArraySpec,
    allocate,
    bytes_of,
    from_little_endian,
)
from solvergen.runtime.snapshots.container import Arrays
from solvergen.runtime.snapshots.document import FORMAT, refuse_newer

NAME = "safetensors"
SUFFIXES: tuple[str, ...] = (".safetensors",)

_MOST_HEADER = 100_000_000  # what the package safetensors reads
_CODES = {"float64": "F64", "float32": "F32", "bfloat16": "BF16", "float16": "F16"}
_METADATA_KEYS = {"solvergen_format", "solvergen_document", "solvergen_sha256"}


def write(path: str, arrays: Arrays, document: bytes) -> None:
    """Fill the new, empty file at ``path``.

    Raises:
        SnapshotError: more names than the format's header may hold.
        OSError: as the system says.
    """
    header = _header(arrays, document)
    if len(header) > _MOST_HEADER:
        raise SnapshotError(
            f"the names need a header of {len(header)} bytes, safetensors allows {_MOST_HEADER}: "
            "use a .h5 file"
        )
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for _, array in arrays:
            file.write(bytes_of(array))


def _header(arrays: Arrays, document: bytes) -> bytes:
    header: dict[str, Any] = {
        "__metadata__": {
            "solvergen_format": str(FORMAT),
            "solvergen_document": document.decode("ascii"),
            "solvergen_sha256": hashlib.sha256(document).hexdigest(),
        }
    }
    offset = 0
    for spec, _ in arrays:
        end = offset + spec.nbytes
        header[spec.key] = {
            "dtype": _CODES[spec.dtype],
            "shape": list(spec.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = strict_json.dump(header).encode("ascii")
    return text + b" " * (-len(text) % 8)


@contextmanager
def opened(path: str, file: BinaryIO, size: int) -> Iterator[Reader]:
    """Read the header of ``file``, which is ``size`` bytes long.

    Raises:
        SnapshotError: damaged, cut short, not written by solvergen, or by a newer one.
    """
    yield Reader(file, size)


class Reader:
    """An open safetensors snapshot (see ``container.Container``)."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        if size < 8:
            raise SnapshotError(f"cut short: {size} bytes")
        length = int.from_bytes(_exactly(file, 8), "little")
        if length > size - 8:
            raise SnapshotError(f"cut short or damaged: a header of {length} bytes in a file of {size}")
        if length > _MOST_HEADER:
            raise SnapshotError(f"damaged: a header of {length} bytes, safetensors allows {_MOST_HEADER}")
        try:
            header = strict_json.parse(_exactly(file, length))
        except ValueError as error:
            raise SnapshotError(f"the header is damaged: {error}") from error
        if not isinstance(header, dict):
            raise SnapshotError("the header is damaged: it is not an object")
        self.document = _document(header.pop("__metadata__", None))
        self._entries: dict[str, object] = header
        self._data_start = 8 + length
        self._data_size = size - self._data_start
        self._offsets: dict[str, int] = {}

    def check(self, specs: Mapping[str, ArraySpec]) -> None:
        """Whether the file holds exactly these arrays, back to back up to its end."""
        if missing := specs.keys() - self._entries.keys():
            raise SnapshotError(f"arrays are missing: {listed(sorted(missing))}")
        if extra := self._entries.keys() - specs.keys():
            raise SnapshotError(f"arrays that do not belong there: {listed(sorted(extra))}")
        ranges: list[tuple[int, int]] = []
        for key, spec in specs.items():
            start, end = _range(self._entries[key], spec)
            ranges.append((start, end))
            self._offsets[key] = start
        expected = 0
        for start, end in sorted(ranges):
            if start != expected:
                raise SnapshotError("the header is damaged: the arrays overlap or leave holes")
            expected = end
        if expected != self._data_size:
            raise SnapshotError(
                f"cut short or damaged: {self._data_size} bytes of data, the header says {expected}"
            )

    def read(self, spec: ArraySpec) -> HostArray:
        """An array that ``check`` has passed."""
        array = allocate(spec)
        self._file.seek(self._data_start + self._offsets[spec.key])
        target = bytes_of(array) if array.size else memoryview(b"")
        if _fill(self._file, target) != spec.nbytes:
            raise SnapshotError(f"cut short in the middle of {quoted(spec.key)}")
        return from_little_endian(array)


def _document(metadata: object) -> bytes:
    if not isinstance(metadata, dict) or "solvergen_format" not in metadata:
        raise SnapshotError("a safetensors file that solvergen did not write: it has no solvergen metadata")
    version = metadata["solvergen_format"]
    if isinstance(version, str) and version.isascii() and version.isdigit() and len(version) < 10:
        refuse_newer(int(version))
    if set(metadata) != _METADATA_KEYS:
        raise SnapshotError(
            f"the metadata has {listed(sorted(metadata))}, not {listed(sorted(_METADATA_KEYS))}"
        )
    text = metadata["solvergen_document"]
    if version != str(FORMAT) or not isinstance(text, str) or not text.isascii():
        raise SnapshotError("the metadata is damaged")
    document = text.encode("ascii")
    if hashlib.sha256(document).hexdigest() != metadata["solvergen_sha256"]:
        raise SnapshotError("the metadata does not match its checksum: the file is damaged")
    return document


def _range(entry: object, spec: ArraySpec) -> tuple[int, int]:
    """Start and end of the array's data, where the entry says what ``spec`` says."""
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise SnapshotError(f"the header is damaged: the entry of {quoted(spec.key)}")
    same = entry["dtype"] == _CODES[spec.dtype] and entry["shape"] == list(spec.shape)
    if not same or any(type(size) is not int for size in entry["shape"]):  # 2.0 and true are no sizes
        raise SnapshotError(f"{quoted(spec.key)} should be {spec}; the header says something else")
    offsets = entry["data_offsets"]
    if not isinstance(offsets, list) or [type(offset) for offset in offsets] != [int, int]:
        raise SnapshotError(f"the header is damaged: the offsets of {quoted(spec.key)}")
    start, end = offsets
    if start < 0 or end - start != spec.nbytes:
        raise SnapshotError(f"{quoted(spec.key)} needs {spec.nbytes} bytes, the header says {end - start}")
    return start, end


def _exactly(file: BinaryIO, count: int) -> bytes:
    data = file.read(count)
    if len(data) != count:
        raise SnapshotError("cut short while it was read")
    return data


def _fill(file: BinaryIO, target: memoryview) -> int:
    filled = 0
    while filled < len(target):
        count = file.readinto(target[filled:])  # type: ignore[attr-defined]
        if not count:
            break
        filled += count
    return filled
