"""From a path to what the file holds, whatever its format."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO, Literal, TypeVar

from solvergen.errors import SnapshotError, SnapshotWarning, SolverFileError
from solvergen.solver.files import binaryproto, hdf5, native, pending
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.file_names import Format, format_of, is_of_torch

StrPath = str | os.PathLike[str]
T = TypeVar("T")

_SEAL = b"solvergen snapshot\n"
_TRIES = 100

# Beginnings of files that people mistake for snapshots.
_STRANGERS = (
    (b"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write"),
    (b"\x93NUMPY", "a NumPy .npy file"),
    (b"\x80\x02", "a pickle; those are never loaded, since they can run any program"),
    (b"\x80\x04", "a pickle; those are never loaded, since they can run any program"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
    (b"version https://git-lfs", "a pointer of Git LFS: fetch the file itself"),
    (b"<!DOCTYPE", "a web page: the download went wrong"),
    (b"<html", "a web page: the download went wrong"),
)


def read_model(path: StrPath) -> ModelData:
    """A model, in the format that the name's ending says, as in Caffe.

    Raises:
        SolverFileError: there is no such file, or it isn't a sound model.
    """
    return _read(
        path,
        {
            "BINARYPROTO": lambda at: binaryproto.read_model(_bytes(at)),
            "HDF5": hdf5.read_model,
            "SAFETENSORS": native.read_model,
        },
    )


def read_state(path: StrPath) -> SolverStateData:
    """A solver's state, in the format that the name's ending says, as in Caffe.

    Raises:
        SolverFileError: there is no such file, or it isn't a sound state.
    """
    return _read(
        path,
        {
            "BINARYPROTO": lambda at: binaryproto.read_state(_bytes(at)),
            "HDF5": hdf5.read_state,
            "SAFETENSORS": native.read_state,
        },
    )


def read_pair(path: StrPath) -> tuple[SolverStateData, ModelData | None]:
    """A solver's state and the model that it names; None if it names none.

    As in Caffe, the model's path counts from where the process is. Where there is nothing, it is looked for
    beside the state, with a warning. A native state knows its model by a checksum.

    Raises:
        SolverFileError: either can't be read, or the model isn't the one that was written with the state.
    """
    name = os.fsdecode(path)
    for _ in range(_TRIES):
        before = _identity(name)
        state = read_state(name)
        try:
            model = _model_of(name, state)
        except SolverFileError:
            if _identity(name) == before:
                raise
            continue  # the pair was replaced, or removed, between its two files
        if _identity(name) == before:
            return state, model
    raise SolverFileError(f"{name}: it is replaced again and again while it is being read")


def _model_of(name: str, state: SolverStateData) -> ModelData | None:
    if state.learned_net is None:
        return None
    model_path = learned_net_path(name, state.learned_net)
    if state.model_digest is None or format_of(model_path) != "SAFETENSORS":
        return read_model(model_path)
    model, digest = _read(model_path, {"SAFETENSORS": native.read_model_and_digest})
    if digest != state.model_digest:
        raise SolverFileError(
            f"{model_path}: not the model that was written with {name}: it was replaced since; "
            "resume from another snapshot, or start from these weights"
        )
    return model


def _identity(name: str) -> tuple[int, int, int, int] | None:
    """Which file there is by this name at the moment."""
    try:
        status = os.stat(pending.current(name))
    except (OSError, ValueError):
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def learned_net_path(path: StrPath, learned_net: str) -> str:
    """Where the model of the state at ``path`` is. Raises ``SolverFileError`` if it is nowhere."""
    name = os.fsdecode(path)
    if os.path.exists(pending.current(learned_net)):
        return learned_net
    beside = os.path.join(os.path.dirname(name), os.path.basename(learned_net))
    if os.path.basename(learned_net) and os.path.exists(pending.current(beside)):
        warnings.warn(
            f"{name}: there is no {learned_net}, where its model was; {beside} is taken", SnapshotWarning, 3
        )
        return beside
    raise SolverFileError(
        f"{name}: its model {learned_net} is neither there (from {os.getcwd()}) nor beside it: put it back, "
        "or give weights and state anew"
    )


def kind_of(path: StrPath) -> tuple[Format, Literal["model", "state"] | None]:
    """The format of a file and which of the two it is; None: neither, such as an optimizer's snapshot.

    Raises:
        SolverFileError: there is no such file, or it can't be looked into.
    """

    def binary(at: str) -> Literal["model", "state"] | None:
        return binaryproto.kind_of(_bytes(at))

    found: Literal["model", "state"] | None = _read(
        path,
        {"BINARYPROTO": binary, "HDF5": hdf5.kind_of, "SAFETENSORS": native.kind_of},
        own_snapshots=lambda _: None,
    )
    return format_of(os.fsdecode(path)), found


def _read(
    path: StrPath,
    readers: dict[Format, Callable[[str], T]],
    own_snapshots: Callable[[str], T] | None = None,
) -> T:
    name = os.fsdecode(path)
    with about(name, "can't be read"):
        for _ in range(_TRIES):
            at = pending.current(name)
            try:
                form = _checked_format(at, name)
                if form is None:
                    if own_snapshots is not None:
                        return own_snapshots(at)
                    raise SolverFileError(
                        "an optimizer's snapshot (of Optimizer.save), not the Solver's: load it with "
                        "Optimizer.load, or let `solvergen snapshot convert` make a solver's state of it"
                    )
                if form not in readers:
                    raise SolverFileError("of another format than it was written in")
                return readers[form](at)
            except (FileNotFoundError, SnapshotError):
                if pending.current(name) == at:
                    raise
        raise SolverFileError("it is replaced again and again while it is being read")


@contextmanager
def about(path: str, what: str) -> Iterator[None]:
    """Put the path in front of what went wrong, and the system's errors into our own terms."""
    try:
        if "\0" in path:
            raise SolverFileError("a path can't hold a NUL character")
        yield
    except SnapshotError as error:
        raise SolverFileError(f"{path}: {error}") from error.__cause__
    except OSError as error:
        raise SolverFileError(f"{path}: {what}: {error.strerror or error}") from error
    except MemoryError as error:
        raise SolverFileError(f"{path}: {what}: not enough memory") from error


def _checked_format(path: str, name: str) -> Format | None:
    """The format that ``name`` means, if the file at ``path`` begins so; None: an optimizer's in HDF5."""
    expected = format_of(name)
    with _open(path) as file:
        head = file.read(520)
    if not head:
        raise SolverFileError("empty")
    if head.startswith(_SEAL):
        return None
    found = _begun(head)
    if found == expected:
        if what := _mistaken(head):
            hint = ": `solvergen snapshot convert` makes ours of one of torch's" if is_of_torch(name) else ""
            raise SolverFileError(f"not a snapshot but {what}{hint}")
        return found
    if found == "BINARYPROTO":
        raise SolverFileError(
            f"not in the format {expected} that its name says: damaged, cut short or foreign"
        )
    ending = ".h5" if found == "HDF5" else ".safetensors"
    raise SolverFileError(
        f"a file of the format {found} whose name says {expected}: rename it to end in {ending}"
    )


def stranger(head: bytes) -> str | None:
    """What a file that begins so is, of those that aren't of torch but may be called so; None: who knows.

    Args:
        head: its first 520 bytes.
    """
    found = _begun(head)
    if found != "BINARYPROTO":
        ending = ".h5" if found == "HDF5" else ".safetensors"
        return f"a file of the format {found}: rename it to end in {ending}"
    if not any(head):
        return "zeros: the download, or the disk, went wrong"
    return _mistaken(head)


def _begun(head: bytes) -> Format:
    """The format of what begins so; that of no beginning of its own where no other fits."""
    if head.startswith(hdf5.SIGNATURE) or head[512:] == hdf5.SIGNATURE:
        return "HDF5"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < 1 << 30:
        return "SAFETENSORS"
    return "BINARYPROTO"


def _mistaken(head: bytes) -> str | None:
    return next((what for beginning, what in _STRANGERS if head.startswith(beginning)), None)


@contextmanager
def _open(path: str) -> Iterator[BinaryIO]:
    # Not blocking: a pipe must not hang us before we can see that it is one.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    with open(os.open(path, flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise SolverFileError("a folder" if os.path.isdir(path) else "not a regular file")
        yield file


def _bytes(path: str) -> memoryview:
    with _open(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > binaryproto.MOST_BYTES:
            raise SolverFileError(
                f"{size} bytes; a binaryproto file has at most {binaryproto.MOST_BYTES} (2 GB - 1), and "
                "Caffe reads no more: damaged or foreign"
            )
        return memoryview(file.read())
