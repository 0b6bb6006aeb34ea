"""Replace a file as a whole or not at all, for writers that need a path and stream gigabytes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from types import ModuleType

from solvergen.files import check_replaceable, sync_folder

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # Windows has no such locks: nothing is swept there
    fcntl = None

_SUFFIX = ".solvergen-tmp"
_WORKSHOP = ".d"
_STALE_SECONDS = 600.0


@contextlib.contextmanager
def replacing(path: str) -> Iterator[str]:
    """Yield the path of a new, empty file in the same folder; rename it over ``path`` at the end.

    The new file is flushed to the disk before the rename and the folder after it, so a crash at any
    moment leaves the old file or the new one. Permissions are 0o666 less the umask. A symbolic link is
    followed: the file that it points to is replaced. If the body raises, ``path`` is untouched and the
    new file is gone. What a killed process left behind is removed by a later call for the same ``path``.

    Raises:
        OSError: as the system says (no such folder, no permission, disk full), or ``path`` isn't a file.
    """
    check_replaceable(path)
    target = os.path.realpath(path)
    folder, name = os.path.split(target)
    with made(folder, prefix_of(name)) as file:
        yield file.path
        file.complete()
        os.replace(file.path, target)
    sync_folder(folder)


def prefix_of(name: str) -> str:
    """How the new files begin that ``made`` makes for ``name``."""
    # A digest, not the name: it may already be as long as the file system allows.
    return f".{hashlib.sha256(os.fsencode(name)).hexdigest()[:16]}."


class Temporary:
    """A new file under a name that nobody asked for.

    ``path`` is where it is. ``kept`` may be set once something else answers for the file: it stays then.
    """

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.kept = False
        self._descriptor = descriptor

    def complete(self) -> None:
        """Flush it to the disk; to be called once it is written, and before it is renamed."""
        with open(self.path, "rb") as complete:  # not always the file that was made: see workshop
            _lock(complete.fileno())
            _flush(complete.fileno())
        _unlock(self._descriptor)


@contextlib.contextmanager
def made(folder: str, prefix: str) -> Iterator[Temporary]:
    """Yield a new, empty file in ``folder``, which is gone at the end unless it was renamed.

    If the body raises, it is gone in any case. What a killed process left behind is removed by a later call
    with the same ``prefix``, which is to be one of ``prefix_of``. Permissions are 0o666 less the umask.

    Raises:
        OSError: as the system says.
    """
    _sweep(folder, prefix)
    temporary = os.path.join(folder, f"{prefix}{secrets.token_hex(8)}{_SUFFIX}")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
    file = Temporary(temporary, descriptor)
    try:
        _lock(descriptor)
        yield file
    except BaseException:
        if not file.kept:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def workshop(temporary: str) -> Iterator[str]:
    """Yield a path in a folder of its own, for a library that itself makes a file elsewhere and renames it.

    ``temporary`` is what ``replacing`` yields. What there is at the yielded path at the end takes its place,
    with its permissions. The folder is gone then, and so is whatever the library left there; after a kill,
    it is swept together with ``temporary``, whose lock stands for both.

    Raises:
        OSError: as the system says.
    """
    folder = temporary + _WORKSHOP
    try:
        os.mkdir(folder, 0o700)
        made = os.path.join(folder, "snapshot")
        yield made
        os.chmod(made, stat.S_IMODE(os.stat(temporary).st_mode))
        os.rename(made, temporary)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _flush(descriptor: int) -> None:
    """Get the file onto the medium. On macOS fsync stops at the drive's cache."""
    full = getattr(fcntl, "F_FULLFSYNC", None)
    if fcntl is not None and full is not None:
        try:
            fcntl.fcntl(descriptor, full)
            return
        except OSError:  # not every file system there has it
            pass
    os.fsync(descriptor)


def _lock(descriptor: int) -> bool:
    """Try to take the file's lock, which the system drops when its holder dies."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody holds it, or a network file system without locks
        return False
    return True


def _unlock(descriptor: int) -> None:
    """Before the file becomes visible: the HDF5 library, if told to, locks what it reads."""
    if fcntl is not None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _sweep(folder: str, prefix: str) -> None:
    """Remove what killed writers left: neither locked nor written to for ten minutes."""
    try:
        names = [n for n in os.listdir(folder) if n.startswith(prefix) and n.endswith(_SUFFIX)]
    except OSError:
        return  # a folder that can be written but not listed
    for name in names:
        stale = os.path.join(folder, name)
        with contextlib.suppress(OSError):
            descriptor = os.open(stale, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                age = time.time() - os.fstat(descriptor).st_mtime
                if age > _STALE_SECONDS and _lock(descriptor):
                    shutil.rmtree(stale + _WORKSHOP, ignore_errors=True)
                    os.unlink(stale)
            finally:
                os.close(descriptor)
