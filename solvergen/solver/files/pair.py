"""Writing a model and its state: both or neither, and never at the cost of the pair before."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import secrets
import warnings
from collections.abc import Callable, Iterator

from solvergen.errors import SnapshotWarning, SolverFileError
from solvergen.files import sync_folder
from solvergen.runtime.snapshots.atomic import Temporary, made, prefix_of, replacing
from solvergen.solver.files import binaryproto, hdf5, native, pending
from solvergen.solver.files.data import ModelData, SolverStateData
from solvergen.solver.files.file_names import Format, Pair, checked_format, format_of, pair, pairs
from solvergen.solver.files.reading import StrPath, about


def write_pair(
    prefix: str,
    iteration: int,
    model: ModelData,
    state: SolverStateData,
    form: str = "BINARYPROTO",
    *,
    keep: int | None = None,
) -> tuple[str, str]:
    """Write a snapshot, model and state, under Caffe's names; the two paths.

    Both files are complete and on the disk before either gets its name, the state gets its name last, and a
    pair of the same names is replaced as a whole. ``state`` gets the model's path, as given by ``prefix``.
    With ``keep``, of the snapshots of this prefix and format up to ``iteration`` all but the last so many
    are removed, after the new one is complete.

    Raises:
        SolverFileError: it can't be written, or the format can't hold it. Everything is as it was.
    """
    chosen = checked_format(form)
    if keep is not None and keep < 1:
        raise SolverFileError(f"keep the last {keep} snapshots? Give at least 1")
    if "\0" in prefix:
        raise SolverFileError("a snapshot_prefix can't hold a NUL character")
    names = pair(prefix, iteration, chosen)
    with about(names.state, "can't be written, nothing was changed"), _advice(prefix):
        _write(names, os.path.basename(prefix), model, state, chosen)
    if keep is not None:
        _prune(prefix, chosen, iteration, keep)
    return names.model, names.state


def write_pair_at(target: Pair, model: ModelData, state: SolverStateData) -> None:
    """Write a model and its state by these names, in the format of their endings: both, or neither.

    Names as a snapshot has them are replaced as ``write_pair`` does.

    Raises:
        SolverFileError: they can't be written, or the format can't hold them.
    """
    form = format_of(target.state)
    with about(target.state, "can't be written, nothing was changed"):
        prefix = pending.prefix_of(target.state)
        plainly = not any(map(os.path.islink, (target.model, target.state)))
        if plainly and prefix is not None and pair(prefix, target.iter, form) == target:
            _write(target, os.path.basename(prefix), model, state, form)
            return
        # The model gets its name first, and both are written by then.
        with replacing(target.state) as new_state, replacing(target.model) as new_model:
            digest = _model_writers()[form](new_model, model)
            complete = dataclasses.replace(state, learned_net=target.model, model_digest=digest)
            _state_writers()[form](new_state, complete)


def write_model(path: StrPath, model: ModelData) -> str | None:
    """Write a model alone, in the format that the name's ending says. Raises ``SolverFileError``.

    Returns the digest by which a native state knows a native model.
    """
    name = os.fsdecode(path)
    with about(name, "can't be written"), replacing(name) as temporary:
        return _model_writers()[format_of(name)](temporary, model)


def write_state(path: StrPath, state: SolverStateData) -> None:
    """Write a state alone, in the format that the name's ending says. Raises ``SolverFileError``."""
    name = os.fsdecode(path)
    with about(name, "can't be written"), replacing(name) as temporary:
        _state_writers()[format_of(name)](temporary, state)


def probe_writable(prefix: str) -> None:
    """Whether snapshots of this prefix can be written, tried as Caffe does when a solver is made.

    Raises:
        SolverFileError: they can't: no such folder, no permission, a full disk.
    """
    if "\0" in prefix:
        raise SolverFileError("a snapshot_prefix can't hold a NUL character")
    probe = f"{prefix}_iter_0.{secrets.token_hex(4)}.tempfile"
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            left = 4096
            while left:  # where little space is left a part is written, and then comes the error
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
            os.unlink(probe)
    except OSError as error:
        folder = os.path.dirname(prefix) or "."
        raise SolverFileError(
            f"can't write to snapshot_prefix {prefix!r}: {error.strerror or error}: make sure that the "
            f"folder {folder} exists and is writable"
        ) from error


def _model_writers() -> dict[Format, Callable[[str, ModelData], str | None]]:
    def binary(path: str, model: ModelData) -> None:
        _stream(path, binaryproto.model_pieces(model))

    return {"BINARYPROTO": binary, "HDF5": hdf5.write_model, "SAFETENSORS": native.write_model}


def _state_writers() -> dict[Format, Callable[[str, SolverStateData], None]]:
    def binary(path: str, state: SolverStateData) -> None:
        _stream(path, binaryproto.state_pieces(state))

    return {"BINARYPROTO": binary, "HDF5": hdf5.write_state, "SAFETENSORS": native.write_state}


def _write(names: Pair, prefix: str, model: ModelData, state: SolverStateData, form: Format) -> None:
    folder = os.path.dirname(names.state) or "."
    for path in (names.model, names.state):
        if os.path.exists(path) and not os.path.isfile(path):
            raise SolverFileError(f"{path} is there and isn't a regular file")
    pending.finish_all(folder, prefix)
    with made(folder, prefix_of(prefix)) as new_model, made(folder, prefix_of(prefix)) as new_state:
        digest = _model_writers()[form](new_model.path, model)
        complete = dataclasses.replace(state, learned_net=names.model, model_digest=digest)
        _state_writers()[form](new_state.path, complete)
        new_model.complete()
        new_state.complete()
        _name(folder, prefix, names, new_model, new_state)


def _name(folder: str, prefix: str, names: Pair, new_model: Temporary, new_state: Temporary) -> None:
    """Give both their names."""
    if os.path.lexists(names.state):
        model, state = os.path.basename(names.model), os.path.basename(names.state)
        renames = [(os.path.basename(new_model.path), model), (os.path.basename(new_state.path), state)]
        stem = f"{prefix}_iter_{names.iter}"
        record = pending.record(folder, prefix, stem, renames)
        new_model.kept = new_state.kept = True  # the record answers for them
        pending.finish(record)
        return
    new_there = not os.path.lexists(names.model)
    os.replace(new_model.path, names.model)
    sync_folder(folder)
    try:
        os.replace(new_state.path, names.state)
    except BaseException:
        if new_there:  # a model without its state is nobody's
            with contextlib.suppress(OSError):
                os.unlink(names.model)
        raise
    sync_folder(folder)


def _stream(path: str, pieces: binaryproto.Pieces) -> None:
    with open(path, "r+b") as file:
        for piece in pieces:
            file.write(piece)


@contextlib.contextmanager
def _advice(prefix: str) -> Iterator[None]:
    """Say what to do about what usually goes wrong."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: "free some space",
            errno.EDQUOT: "your quota is used up",
            errno.EFBIG: "the file system, or a limit of the process, allows no file of this size",
            errno.ENOENT: f"the folder {os.path.dirname(prefix) or '.'} is gone",
            errno.EACCES: "look at the permissions of the folder",
            errno.EROFS: "the file system is read-only",
        }
        hint = hints.get(error.errno or 0)
        if hint is None:
            raise
        raise OSError(error.errno, f"{error.strerror}: {hint}") from error


def _prune(prefix: str, form: Format, iteration: int, keep: int) -> None:
    """Remove all but the last ``keep`` snapshots; those of later iterations are another run's."""
    found = sorted((p for p in pairs(prefix, form) if p.iter <= iteration), key=lambda p: p.iter)
    for old in found[:-keep]:
        try:
            os.unlink(old.state)  # first: a state without its model couldn't be resumed from
            os.unlink(old.model)
        except FileNotFoundError:
            continue
        except OSError as error:
            warnings.warn(f"{old.state}: can't be removed: {error.strerror}", SnapshotWarning, stacklevel=4)
