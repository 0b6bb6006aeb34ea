"""Snapshots as HDF5 files, through h5py, which is imported when it is first needed.

The arrays are plain contiguous datasets named by their keys, the document is the text dataset
``solvergen``. The HDF5 library is no judge of damaged files: it has been known to crash on them. So the
first 512 bytes, which HDF5 leaves to its users, hold a seal: length and SHA-256 of all that follows.
The library sees a file only after the seal was found intact. ``docs/snapshots.md`` has the details.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from solvergen.errors import SnapshotError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots.arrays import (
    ArraySpec,
    allocate,
    bytes_of,
    from_little_endian,
)
from solvergen.runtime.snapshots.container import Arrays
from solvergen.runtime.snapshots.document import refuse_newer
from solvergen.runtime.snapshots.sink import Sink

NAME = "HDF5"
SUFFIXES: tuple[str, ...] = (".h5", ".hdf5")

_SEAL_SIZE = 512
_SEAL = re.compile(
    rb"solvergen snapshot\nformat ([0-9]{1,9})\nbytes ([0-9]{1,19})\nsha256 ([0-9a-f]{64})\n\0*"
)
_DOCUMENT = "solvergen"
_MOST_RANK = 32  # H5S_MAX_RANK
_STORED = {"float64": "<f8", "float32": "<f4", "bfloat16": "<u2", "float16": "<f2"}
_DOCUMENT_ATTRIBUTE = "sha256"
_BFLOAT16_ATTRIBUTE = "dtype"


def write(path: str, arrays: Arrays, document: bytes, version: int) -> None:
    """Fill the new, empty file at ``path``; ``version`` is the document's.

    Raises:
        SnapshotError: h5py isn't there, or an array has more dimensions than HDF5 knows.
        OSError: as the system says.
    """
    h5py = _h5py()
    for spec, _ in arrays:
        if len(spec.shape) > _MOST_RANK:
            raise SnapshotError(
                f"{quoted(spec.key)} has {len(spec.shape)} dimensions, HDF5 goes to {_MOST_RANK}: "
                "use a .safetensors file"
            )
    with open(path, "r+b") as file:
        sink = Sink(file)
        try:
            _fill(h5py, sink, arrays, document)
        except Exception:
            sink.check()  # the reason, where it is what the library stumbled over
            raise
        sink.check()
        file.flush()
        size = file.seek(0, 2)
        seal = _seal(version, size, _digest(file))
        file.seek(0)
        file.write(seal)


def _fill(h5py: Any, sink: Sink, arrays: Arrays, document: bytes) -> None:
    with _created(h5py, sink) as file:
        for folder in sorted({spec.key.rsplit("/", 1)[0] for spec, _ in arrays}):
            _create_group(h5py, file, folder)
        text = np.array(document, f"S{len(document)}")
        dataset = file.create_dataset(_DOCUMENT, data=text, track_times=False)
        digest = hashlib.sha256(document).hexdigest()
        dataset.attrs[_DOCUMENT_ATTRIBUTE] = np.array(digest.encode("ascii"), "S64")
        for spec, array in arrays:
            stored = np.frombuffer(bytes_of(array), _STORED[spec.dtype]).reshape(spec.shape)
            dataset = file.create_dataset(spec.key, data=stored, track_times=False)
            if spec.dtype == "bfloat16":
                dataset.attrs[_BFLOAT16_ATTRIBUTE] = np.array(b"bfloat16", "S8")
            if sink.failure is not None:
                return


def _created(h5py: Any, sink: Sink) -> Any:
    """A new file, by the calls beneath ``h5py.File``: times are recorded nowhere."""
    creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    creation.set_userblock(_SEAL_SIZE)
    creation.set_obj_track_times(False)  # of the root group
    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, sink)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    # The oldest layout with checksums of its own: whatever reads HDF5 reads it.
    access.set_libver_bounds(h5py.h5f.LIBVER_V18, h5py.h5f.LIBVER_V18)
    return h5py.File(h5py.h5f.create(b"snapshot", h5py.h5f.ACC_TRUNC, fapl=access, fcpl=creation))


def _create_group(h5py: Any, file: Any, path: str) -> None:
    creation = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
    creation.set_obj_track_times(False)
    parts = path.split("/")
    for depth in range(len(parts)):
        name = "/".join(parts[: depth + 1])
        if name not in file:
            h5py.h5g.create(file.id, name.encode("ascii"), gcpl=creation)


@contextmanager
def opened(path: str, file: BinaryIO, size: int) -> Iterator[Reader]:
    """Verify the seal of ``file``, then open ``path`` with h5py.

    Should another process replace the file in between, what is opened is another one: the caller looks.

    Raises:
        SnapshotError: damaged, cut short, not written by solvergen, or by a newer one; no h5py.
    """
    version = _verify(file, size)
    h5py = _h5py()
    try:
        opened_file = h5py.File(path, "r", locking=False)
    except (OSError, RuntimeError, ValueError) as error:
        raise SnapshotError(f"the HDF5 library can't open it: {error}") from error
    with opened_file:
        yield Reader(h5py, opened_file, size, version)


class Reader:
    """An open HDF5 snapshot (see ``container.Container``).

    Only hard links to groups and contiguous, unfiltered datasets of the expected types are followed:
    nothing in the file can lead to another file, a plugin or an object of Python's.
    """

    def __init__(self, h5py: Any, file: Any, size: int, version: int) -> None:
        self.version = version
        self._h5py = h5py
        self._size = size
        self._root = file.id
        self._datasets: dict[str, Any] = {}
        self.document = self._read_document()

    def check(self, specs: Mapping[str, ArraySpec]) -> None:
        """Whether the file holds exactly these datasets, as declared, with all their bytes."""
        tree: dict[str, Any] = {_DOCUMENT: None}
        for key in specs:
            *folders, name = key.split("/")
            branch = tree
            for folder in folders:
                branch = branch.setdefault(folder, {})
            branch[name] = specs[key]
        with self._translated():
            self._check_group(self._root, tree, "")

    def read(self, spec: ArraySpec) -> HostArray:
        """An array that ``check`` has passed."""
        array = allocate(spec)
        if array.size:
            with self._translated():
                flat = array.reshape(-1).view(np.uint8).view(_STORED[spec.dtype]).reshape(spec.shape)
                self._datasets[spec.key].read(self._h5py.h5s.ALL, self._h5py.h5s.ALL, flat)
        return from_little_endian(array)

    def _check_group(self, group: Any, tree: Mapping[str, Any], path: str) -> None:
        self._check_names(group, set(tree), path)
        for name, content in tree.items():
            if content is None:
                continue
            child = self._child(group, name, f"{path}{name}")
            if isinstance(content, ArraySpec):
                self._check_dataset(child, content)
                self._datasets[content.key] = child
            elif isinstance(child, self._h5py.h5g.GroupID):
                self._check_group(child, content, f"{path}{name}/")
            else:
                raise SnapshotError(f"{quoted(path + name)} is not a group")

    def _check_names(self, group: Any, expected: set[str], path: str) -> None:
        names = {name.decode("utf-8", "backslashreplace") for name in group}
        if missing := expected - names:
            raise SnapshotError(f"objects are missing: {listed(path + name for name in sorted(missing))}")
        if extra := names - expected:
            raise SnapshotError(
                f"objects that do not belong there: {listed(sorted(path + name for name in extra))}"
            )

    def _child(self, group: Any, name: str, path: str) -> Any:
        """The object behind a hard link."""
        encoded = name.encode("utf-8")
        if not group.links.exists(encoded):
            raise SnapshotError(f"{quoted(path)} is missing")
        if group.links.get_info(encoded).type != self._h5py.h5l.TYPE_HARD:
            raise SnapshotError(f"{quoted(path)} is a soft or external link; snapshots have none")
        return self._h5py.h5o.open(group, encoded)

    def _check_dataset(self, dataset: Any, spec: ArraySpec) -> None:
        kind = self._h5py.h5t.py_create(np.dtype(_STORED[spec.dtype]))
        self._check_storage(dataset, spec.key, kind, spec.shape, spec.nbytes)
        marked = spec.dtype == "bfloat16"
        self._check_attributes(dataset, spec.key, {_BFLOAT16_ATTRIBUTE: b"bfloat16"} if marked else {})

    def _check_attributes(self, dataset: Any, path: str, expected: Mapping[str, bytes]) -> None:
        """Whether the dataset has exactly these attributes, texts of a fixed length."""
        h5a = self._h5py.h5a
        if h5a.get_num_attrs(dataset) != len(expected):
            raise SnapshotError(f"{quoted(path)} has attributes that do not belong there, or lacks its own")
        for name, value in expected.items():
            if not h5a.exists(dataset, name.encode("ascii")):
                raise SnapshotError(f"{quoted(path)} lacks its attribute {name!r}")
            attribute = h5a.open(dataset, name.encode("ascii"))
            text = np.empty((), f"S{len(value)}")
            if attribute.shape != () or attribute.get_type() != self._h5py.h5t.py_create(text.dtype):
                raise SnapshotError(f"the attribute {name!r} of {quoted(path)} is damaged")
            attribute.read(text)
            if text.item() != value:
                raise SnapshotError(f"the attribute {name!r} of {quoted(path)} is not {value.decode()!r}")

    def _check_storage(self, dataset: Any, path: str, kind: Any, shape: tuple[int, ...], nbytes: int) -> None:
        """Refuse whatever is not one run of the file's own bytes, of this type and shape."""
        h5py = self._h5py
        if not isinstance(dataset, h5py.h5d.DatasetID):
            raise SnapshotError(f"{quoted(path)} is not a dataset")
        creation = dataset.get_create_plist()
        if creation.get_layout() != h5py.h5d.CONTIGUOUS:
            raise SnapshotError(f"{quoted(path)} is stored in chunks, compact or virtual, not as one run")
        if creation.get_external_count():
            raise SnapshotError(f"{quoted(path)} keeps its data in another file")
        if creation.get_nfilters():
            raise SnapshotError(f"{quoted(path)} is compressed or filtered; snapshots are plain")
        if dataset.get_type() != kind:
            raise SnapshotError(f"{quoted(path)} is of another type than the document says")
        if dataset.get_space().get_simple_extent_type() == h5py.h5s.NULL or dataset.shape != shape:
            raise SnapshotError(f"{quoted(path)} is of another shape than the document says")
        if dataset.get_storage_size() != nbytes or nbytes > self._size:
            raise SnapshotError(f"{quoted(path)} needs {nbytes} bytes; the file does not hold them")

    def _read_document(self) -> bytes:
        h5py = self._h5py
        with self._translated():
            dataset = self._child(self._root, _DOCUMENT, _DOCUMENT)
            if not isinstance(dataset, h5py.h5d.DatasetID):
                raise SnapshotError(f"{_DOCUMENT!r} is not a dataset")
            kind = dataset.get_type()
            size = kind.get_size()
            if not isinstance(kind, h5py.h5t.TypeStringID) or kind.is_variable_str() or size > self._size:
                raise SnapshotError(f"{_DOCUMENT!r} is not text of a fixed length")
            self._check_storage(dataset, _DOCUMENT, kind, (), size)
            text = np.empty((), f"S{size}")
            dataset.read(h5py.h5s.ALL, h5py.h5s.ALL, text)
            document = bytes(text.item())
            digest = hashlib.sha256(document).hexdigest()
            self._check_attributes(dataset, _DOCUMENT, {_DOCUMENT_ATTRIBUTE: digest.encode("ascii")})
            return document

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """The HDF5 library's complaints, which come as almost any exception, in our own terms."""
        try:
            yield
        except (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError) as error:
            raise SnapshotError(f"the HDF5 library can't read it: {error}") from error


def _seal(version: int, size: int, digest: str) -> bytes:
    text = f"solvergen snapshot\nformat {version}\nbytes {size}\nsha256 {digest}\n"
    return text.encode("ascii").ljust(_SEAL_SIZE, b"\0")


def _verify(file: BinaryIO, size: int) -> int:
    """The format that the seal says, if it holds."""
    file.seek(0)
    found = file.read(_SEAL_SIZE)
    seal = _SEAL.fullmatch(found)
    if seal is None:
        if found.startswith(b"\x89HDF"):
            raise SnapshotError(
                "an HDF5 file without solvergen's seal: written by another program, or rewritten by one"
            )
        raise SnapshotError("the seal at the file's beginning is damaged")
    version = int(seal[1])
    refuse_newer(version)
    if int(seal[2]) != size:
        raise SnapshotError(f"cut short or damaged: {size} bytes, the seal says {int(seal[2])}")
    if _seal(version, size, _digest(file)) != found:
        raise SnapshotError("the content does not match the seal's checksum: the file is damaged")
    return version


def _digest(file: BinaryIO) -> str:
    """SHA-256 of all that follows the seal."""
    file.seek(_SEAL_SIZE)
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(1 << 20))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(buffer[:count])
    return digest.hexdigest()


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise SnapshotError(
            f"HDF5 snapshots need the package h5py ({error}): pip install h5py, or use a .safetensors file"
        ) from error
    return h5py
