"""Writing files whole or not at all. Standard library only: both halves of the package use it."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` so that readers, and crashes at any moment, see the old file or the new one.

    The data goes to a new file in the same folder, is flushed to the disk, and the file is then renamed
    over ``path``. The permissions of a file that is already there are kept; a new one gets the usual ones
    (0o666 less the umask). A symbolic link is followed: the file it points to is replaced, not the link.
    The folder must exist.

    Raises:
        OSError: the folder is missing or not writable, the disk is full, ``path`` is no regular file, ... It
            is then as it was, and no temporary file is left behind.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    mode = None
    with contextlib.suppress(FileNotFoundError):
        mode = target.stat().st_mode & 0o7777
    temporary = target.with_name(f".{target.name[:200]}.{secrets.token_hex(8)}.tmp")
    # O_EXCL: never through a link that somebody laid there.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if mode is not None:
            os.chmod(temporary, mode)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise OSError for what a file must not be renamed over: a device, a pipe or a socket would be gone.

    Who may write to ``/dev`` would lose ``/dev/null`` for the whole machine.
    """
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "not a regular file, and it isn't replaced by one", os.fspath(path))


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Flush a folder's entries to the disk, so that a rename in it outlives a power cut.

    Some file systems refuse to sync a folder; the rename is atomic all the same, so that is not an error.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
