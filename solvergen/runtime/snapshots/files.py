"""Snapshot files: from data to a path and back."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from solvergen.errors import SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.naming import quoted
from solvergen.runtime.snapshots import document
from solvergen.runtime.snapshots.arrays import ArraySpec, bytes_of, checksum
from solvergen.runtime.snapshots.atomic import replacing
from solvergen.runtime.snapshots.container import Container
from solvergen.runtime.snapshots.formats import format_of, opened
from solvergen.runtime.state import SnapshotData

StrPath = str | os.PathLike[str]
"""A path as the standard library takes it."""


def save(path: StrPath, data: SnapshotData) -> None:
    """Write ``data`` to ``path``, in the format that its suffix names.

    The file is replaced as a whole: whatever happens, ``path`` is the old file or the new one. The same
    data gives the same bytes.

    Raises:
        SnapshotError: unknown suffix, data that contradicts itself or that the format can't hold, a
            package that isn't installed, or a file that can't be written. ``path`` is as it was.
    """
    name = os.fsdecode(path)
    with _about(name, "can't be written"):
        chosen = format_of(name)
        pieces = [(slot.spec, array) for slot, array in document.slots_of(data)]
        checksums = {spec.key: checksum(spec, bytes_of(array)) for spec, array in pieces}
        text = document.encode(data, {spec.key: spec for spec, _ in pieces}, checksums)
        if os.path.exists(name) and not os.path.isfile(name):
            raise SnapshotError("a folder" if os.path.isdir(name) else "not a regular file")
        # The widest elements first keep every array aligned to its element within the file.
        pieces.sort(key=lambda piece: (-STORAGE_TYPES[piece[0].dtype].itemsize, piece[0].key))
        with replacing(name) as temporary:
            chosen.write(temporary, pieces, text, document.version_of(data))


def load(path: StrPath) -> SnapshotData:
    """Read a snapshot and verify all of it.

    Arrays are new, C-contiguous and of the host's byte order. Never more memory is asked for than a
    small multiple of the file's size.

    Raises:
        SnapshotError: there is no such file, or it is not a sound snapshot in a format known here.
    """
    with Snapshot.opened(path) as snapshot:
        arrays: dict[str, dict[str, HostArray]] = {t.name: {} for t in snapshot.header.data.tensors}
        params: dict[str, HostArray] = {}
        for slot in snapshot.header.slots:
            array = snapshot.read(slot.spec)
            if slot.state is None:
                params[slot.tensor] = array
            else:
                arrays[slot.tensor][slot.state] = array
    data = snapshot.header.data
    return dataclasses.replace(
        data,
        tensors=tuple(
            dataclasses.replace(tensor, arrays=arrays[tensor.name], param=params.get(tensor.name))
            for tensor in data.tensors
        ),
    )


@dataclass(frozen=True, eq=False)
class Snapshot:
    """An open snapshot: its header, and its arrays on request."""

    path: str
    format: str
    size: int
    header: document.Header
    container: Container

    @staticmethod
    @contextmanager
    def opened(path: StrPath) -> Iterator[Snapshot]:
        """Open a file and verify everything but the arrays' bytes. Raises ``SnapshotError``."""
        name = os.fsdecode(path)
        with _about(name, "can't be read"), opened(name) as (chosen, size, container):
            header = document.decode(container.document)
            if container.version != header.version:
                raise SnapshotError("damaged: the file and its document say different formats")
            specs: Mapping[str, ArraySpec] = {slot.spec.key: slot.spec for slot in header.slots}
            if sum(spec.nbytes for spec in specs.values()) > size:
                raise SnapshotError("cut short or damaged: it declares more data than it is long")
            container.check(specs)
            yield Snapshot(name, chosen.NAME, size, header, container)

    def read(self, spec: ArraySpec) -> HostArray:
        """One array, verified. Raises ``SnapshotError``."""
        array = self.container.read(spec)
        if checksum(spec, bytes_of(array)) != self.header.checksums[spec.key]:
            raise SnapshotError(f"the data of {quoted(spec.key)} does not match its checksum: damaged")
        return array


@contextmanager
def _about(path: str, what: str) -> Iterator[None]:
    """Put the path in front of what went wrong, and the system's errors into our own terms."""
    try:
        if "\0" in path:
            raise SnapshotError("a path can't hold a NUL character")
        yield
    except SnapshotError as error:
        raise SnapshotError(f"{path}: {error}") from error.__cause__
    except OSError as error:
        raise SnapshotError(f"{path}: {what}: {error.strerror or error}") from error
