"""Caffe's HDF5 files: ``.caffemodel.h5`` and ``.solverstate.h5``.

A model has the group ``data`` with a group for each layer, in it the blobs "0", "1", ...; if diffs were kept
``diff`` has the same. A blob that a layer takes from another one is in its owner's group alone; whose it is
Caffe's files don't say, and ours in an attribute of the group, which Caffe ignores. A state has
``iter`` and ``current_step`` (arrays of one int), ``learned_net`` (text) and the group ``history`` with
"0", "1", .... Nothing but plain datasets behind hard links is read.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.naming import listed, quoted
from solvergen.runtime.snapshots.sink import Sink
from solvergen.solver.files import sharing
from solvergen.solver.files.data import LayerData, ModelData, SolverStateData
from solvergen.solver.files.parameter_names import is_text

MOST_AXES = 32
SIGNATURE = b"\x89HDF\r\n\x1a\n"

_DEFLATE = 1032  # no filter of HDF5's own makes more of a byte
_MOST_TEXT = 65536
_MOST_DEPTH = 64
_SHARED = "solvergen_owner_of_"


def write_model(path: str, model: ModelData) -> None:
    """Fill the new, empty file at ``path``.

    Raises:
        SolverFileError: no h5py, or something that these files can't hold.
        OSError: as the system says.
    """
    names = [layer.name for layer in model.layers]
    for name in names:
        odd = not name or any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name
        if odd or not is_text(name):
            raise SolverFileError(
                f"HDF5 can't have a group named {quoted(name)}: use another snapshot_format"
            )
    if len(set(names)) != len(names):
        raise SolverFileError(
            "two layers have the same name: HDF5 can't hold both; use another snapshot_format"
        )
    if nested := [name for name in names if "/" in name]:
        warnings.warn(
            f"Caffe finds no layers in HDF5 whose names have a slash ({listed(nested)}); solvergen does",
            SnapshotWarning,
            stacklevel=2,
        )
    with _filling(path) as (h5py, root):
        data = _group(h5py, root, "data")
        with_diff = any(layer.diffs is not None for layer in model.layers)
        diff = _group(h5py, root, "diff") if with_diff else None
        owned: dict[tuple[int, tuple[int, ...]], str] = {}
        for layer in model.layers:
            group = _group(h5py, data, layer.name)
            for index, blob in enumerate(layer.blobs):
                if blob is None:
                    continue
                place = (blob.__array_interface__["data"][0], blob.shape)
                if blob.size and place in owned:
                    _share(group, index, owned[place])
                    continue
                owned[place] = f"{layer.name}/{index}"
                _dataset(h5py, group, str(index), blob, f"layer {quoted(layer.name)}, blob {index}")
            if diff is not None:
                group = _group(h5py, diff, layer.name)
                for index, blob in enumerate(layer.diffs or ()):
                    _dataset(h5py, group, str(index), blob, f"layer {quoted(layer.name)}, diff {index}")


def write_state(path: str, state: SolverStateData) -> None:
    """Fill the new, empty file at ``path``. Raises as ``write_model``."""
    for what, value in (("iter", state.iter), ("current_step", state.current_step)):
        if not 0 <= value < 2**31:
            raise SolverFileError(f"{what} is {value}; Caffe's files hold 0 to {2**31 - 1}")
    with _filling(path) as (h5py, root):
        root.create_dataset("iter", data=np.array([state.iter], "<i4"))
        if state.learned_net is not None:
            _text(h5py, root, "learned_net", state.learned_net)
        root.create_dataset("current_step", data=np.array([state.current_step], "<i4"))
        group = _group(h5py, root, "history")
        for index, array in enumerate(state.history):
            _dataset(h5py, group, str(index), array, f"history {index}")


def kind_of(path: str) -> Literal["model", "state"] | None:
    """Which of the two a file is. Raises ``SolverFileError`` if the library can't open it."""
    with _opened(path) as (_, root, _size):
        names = set(root)
    if {"iter", "history"} <= names:
        return "state"
    return "model" if "data" in names else None


def read_model(path: str) -> ModelData:
    """The model in a file. Raises ``SolverFileError`` and ``OSError``."""
    with _opened(path) as (h5py, root, size):
        data = _child(h5py, root, "data")
        if data is None:
            _refuse(root, "model")
        diff = _child(h5py, root, "diff")
        layers = []
        owners: dict[sharing.Place, sharing.Place] = {}
        for name, group in _layers(h5py, data, "", 0):
            owners |= _shared(group, name)
            blobs = _numbered(h5py, group, size, f"layer {quoted(name)}")
            diffs: tuple[HostArray, ...] | None = None
            beside = None if diff is None else _descend(h5py, diff, name)
            if beside is not None:
                found = _numbered(h5py, beside, size, f"layer {quoted(name)}, diff")
                kept = tuple(blob for blob in found if blob is not None)
                diffs = kept if found and len(kept) == len(found) >= len(blobs) else None
                # A last blob that another layer owns is missing here and has a diff there.
                blobs += (None,) * (len(found) - len(blobs))
            layers.append(LayerData(name=name, blobs=blobs, diffs=diffs, partial=True))
        return sharing.resolved(ModelData(layers=tuple(layers)), owners)


def read_state(path: str) -> SolverStateData:
    """The state in a file. Raises ``SolverFileError`` and ``OSError``."""
    with _opened(path) as (h5py, root, size):
        history = _child(h5py, root, "history")
        if history is None or "iter" not in root:
            _refuse(root, "state")
        arrays = _numbered(h5py, history, size, "history")
        kept = tuple(array for array in arrays if array is not None)
        if len(kept) != len(arrays):
            gap = next(index for index, array in enumerate(arrays) if array is None)
            raise SolverFileError(f"history {gap} is missing: damaged")
        return SolverStateData(
            iter=_integer(h5py, root, "iter"),
            learned_net=_read_text(h5py, root, "learned_net") if "learned_net" in root else None,
            history=kept,
            current_step=_integer(h5py, root, "current_step") if "current_step" in root else 0,
        )


def _refuse(root: Any, wanted: str) -> None:
    names = set(root)
    if wanted == "state" and "data" in names:
        raise SolverFileError(
            "a model (weights alone), not a solver's state: give it as weights, or give the .solverstate.h5 "
            "that was written with it"
        )
    if wanted == "model" and {"iter", "history"} <= names:
        raise SolverFileError("a solver's state, not a model: give it as the snapshot to resume from")
    raise SolverFileError(f"an HDF5 file of something else: it has {listed(sorted(names)) or 'nothing'}")


@contextmanager
def _filling(path: str) -> Iterator[tuple[Any, Any]]:
    """A new HDF5 file at ``path`` whose failed writes are told when it is complete (see ``Sink``)."""
    h5py = _h5py()
    with open(path, "r+b") as file:
        sink = Sink(file)
        try:
            access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
            access.set_fileobj_driver(h5py.h5fd.fileobj_driver, sink)
            access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
            # Caffe's own age: what HDF5 1.8 reads.
            access.set_libver_bounds(h5py.h5f.LIBVER_EARLIEST, h5py.h5f.LIBVER_V18)
            creation = h5py.h5p.create(h5py.h5p.FILE_CREATE)
            creation.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED | h5py.h5p.CRT_ORDER_INDEXED)
            made = h5py.h5f.create(b"snapshot", h5py.h5f.ACC_TRUNC, fapl=access, fcpl=creation)
            del access, creation  # see Sink: nothing of HDF5's may be left in a traceback
            with h5py.File(made) as root:
                yield h5py, root
        except Exception:
            sink.check()
            raise
        finally:
            made = root = None
        sink.check()
        file.flush()


def _group(h5py: Any, parent: Any, name: str) -> Any:
    """A group, and those that a name with slashes leads through; layers keep their order in the file."""
    group = parent
    for part in name.split("/"):
        group = group[part] if part in group else group.create_group(part, track_order=True)
    return group


def _dataset(h5py: Any, group: Any, name: str, array: HostArray, what: str) -> None:
    if array.dtype.name == "float64":
        stored = "<f8"
    elif array.dtype.name in ("float32", "float16", "bfloat16"):
        stored = "<f4"
    else:
        raise SolverFileError(f"{what}: Caffe's files hold floats and doubles, this is {array.dtype.name}")
    if array.ndim > MOST_AXES:
        raise SolverFileError(f"{what}: {array.ndim} axes; Caffe goes to {MOST_AXES}")
    if name in group:  # a layer "conv1/0" beside the layer "conv1"
        raise SolverFileError(f"{what} has the place of a layer in HDF5: use another snapshot_format")
    group.create_dataset(name, data=np.asarray(array, stored, order="C"), track_times=False)


def _share(group: Any, index: int, owner: str) -> None:
    """Note that a blob of this layer is another one's."""
    text = owner.encode("utf-8", "surrogateescape")
    if len(text) < _MOST_TEXT // 2:  # an attribute's own limit
        group.attrs.create(f"{_SHARED}{index}", np.bytes_(text))


def _shared(group: Any, layer: str) -> dict[sharing.Place, sharing.Place]:
    """Whose this layer's blobs are, as far as it is noted."""
    found = {}
    for name in group.attrs:
        if not name.startswith(_SHARED):
            continue
        value = group.attrs[name]
        mine = sharing.place_of(f"{layer}/{name.removeprefix(_SHARED)}")
        owner = None
        if isinstance(value, bytes):
            owner = sharing.place_of(value.decode("utf-8", "surrogateescape"))
        if mine is None or owner is None:
            raise SolverFileError(
                f"layer {quoted(layer)}: the note {quoted(name)} on a shared blob is damaged"
            )
        found[mine] = owner
    return found


def _text(h5py: Any, root: Any, name: str, value: str) -> None:
    """As H5LTmake_dataset_string does: one text of a fixed length, with a NUL at its end."""
    try:
        data = value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise SolverFileError(
            f"{value!r} holds half of a surrogate pair and can't be stored as text"
        ) from None
    kind = h5py.h5t.C_S1.copy()
    kind.set_size(len(data) + 1)
    kind.set_strpad(h5py.h5t.STR_NULLTERM)
    dataset = h5py.h5d.create(root.id, name.encode("ascii"), kind, h5py.h5s.create(h5py.h5s.SCALAR))
    dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array(data + b"\0", f"S{len(data) + 1}"), kind)


@contextmanager
def _opened(path: str) -> Iterator[tuple[Any, Any, int]]:
    """An open file and its size; the library's complaints, which come as almost any exception, as ours."""
    h5py = _h5py()
    with open(path, "rb") as file:
        size = file.seek(0, 2)
    try:
        with h5py.File(path, "r", locking=False) as root:
            yield h5py, root, size
    except (OSError, RuntimeError, ValueError, TypeError, KeyError, MemoryError) as error:
        if isinstance(error, SolverFileError):
            raise
        raise SolverFileError(f"damaged or cut short: the HDF5 library can't read it: {error}") from error


def _child(h5py: Any, group: Any, name: str) -> Any:
    """A group or dataset behind a hard link; None if there is none of this name."""
    if name not in group:
        return None
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise SolverFileError(f"{quoted(name)} leads elsewhere (a soft or external link): not followed")
    return group[name]


def _descend(h5py: Any, group: Any, path: str) -> Any:
    for part in path.split("/"):
        if not isinstance(group, h5py.Group):
            return None
        group = _child(h5py, group, part)
        if group is None:
            return None
    return group


def _layers(h5py: Any, group: Any, prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    """Every layer's name and group, in the file's order; names with slashes are groups in groups."""
    if depth > _MOST_DEPTH:
        raise SolverFileError("groups in groups without end")
    for name in group:
        child = _child(h5py, group, name)
        if not isinstance(child, h5py.Group):
            continue
        kinds = {isinstance(_child(h5py, child, inner), h5py.Group) for inner in child}
        if kinds != {True}:  # blobs, or nothing at all: a layer
            yield prefix + name, child
        if True in kinds:
            yield from _layers(h5py, child, f"{prefix}{name}/", depth + 1)


def _numbered(h5py: Any, group: Any, size: int, what: str) -> tuple[HostArray | None, ...]:
    """The datasets "0", "1", ... of a group; None where a number is missing."""
    found: dict[int, HostArray] = {}
    for name in group:
        dataset = _child(h5py, group, name)
        if not isinstance(dataset, h5py.Dataset):
            continue
        if not (name.isascii() and name.isdigit() and str(int(name[:9])) == name):
            raise SolverFileError(f"{what}: a dataset {quoted(name)}, where Caffe has numbers: foreign")
        found[int(name)] = _array(h5py, dataset, size, f"{what}, {name}")
    if found and max(found) > 100_000:
        raise SolverFileError(f"{what}: a dataset {max(found)} and only {len(found)} of them: damaged")
    return tuple(found.get(index) for index in range(max(found, default=-1) + 1))


def _array(h5py: Any, dataset: Any, size: int, what: str) -> HostArray:
    """A dataset of floats or doubles, once it is sure that the file has its bytes."""
    kind = dataset.dtype
    if kind.kind != "f" or kind.itemsize not in (4, 8):
        raise SolverFileError(f"{what}: {kind}, where Caffe has floats or doubles")
    if len(dataset.shape) > MOST_AXES:
        raise SolverFileError(f"{what}: {len(dataset.shape)} axes; Caffe goes to {MOST_AXES}")
    nbytes = math.prod(dataset.shape) * kind.itemsize
    creation = dataset.id.get_create_plist()
    layout = creation.get_layout()
    if creation.get_external_count() or layout not in (
        h5py.h5d.COMPACT,
        h5py.h5d.CONTIGUOUS,
        h5py.h5d.CHUNKED,
    ):
        raise SolverFileError(f"{what}: its data are in another file: not followed")
    stored = dataset.id.get_storage_size()
    whole = stored * _DEFLATE >= nbytes if layout == h5py.h5d.CHUNKED else stored == nbytes
    if not whole or stored > size:
        raise SolverFileError(
            f"{what}: cut short or damaged: the file doesn't have the data of {dataset.shape}"
        )
    array = np.empty(dataset.shape, kind.newbyteorder("="))
    if array.size:
        dataset.read_direct(array)
    return array


def _integer(h5py: Any, root: Any, name: str) -> int:
    dataset = _child(h5py, root, name)
    if not isinstance(dataset, h5py.Dataset) or dataset.dtype.kind not in "iu" or dataset.size != 1:
        raise SolverFileError(f"{quoted(name)} isn't one integer: damaged or foreign")
    value = int(np.asarray(dataset[()]).reshape(()))
    if not 0 <= value < 2**31:
        raise SolverFileError(f"damaged: {name} is {value}")
    return value


def _read_text(h5py: Any, root: Any, name: str) -> str:
    dataset = _child(h5py, root, name)
    kind = None if not isinstance(dataset, h5py.Dataset) else dataset.id.get_type()
    if not isinstance(kind, h5py.h5t.TypeStringID) or dataset.size != 1:
        raise SolverFileError(f"{quoted(name)} isn't text: damaged or foreign")
    if not kind.is_variable_str() and kind.get_size() > _MOST_TEXT:
        raise SolverFileError(f"{quoted(name)} is text of {kind.get_size()} bytes: damaged")
    value = dataset[()]
    data = value if isinstance(value, bytes) else np.asarray(value).reshape(-1)[0]
    return bytes(data).split(b"\0")[0].decode("utf-8", "surrogateescape")


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise SolverFileError(
            f"HDF5 files need the package h5py ({error}): pip install 'h5py>=3.11', or use "
            "another snapshot_format"
        ) from error
    return h5py
