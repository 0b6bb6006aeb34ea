"""Writing files whole or not at all. Standard library only: both halves of the package use it."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write ``data`` to ``path`` so that readers, and crashes at any moment, see the old file or the new one.

    The data goes to a new file in the same folder, is flushed to the disk, and the file is then renamed
    over ``path``. The permissions of a file that is already there are kept; a new one gets the usual ones
    (0o666 less the umask). A symbolic link is followed: the file it points to is replaced, not the link.
    The folder must exist.

    Raises:
        OSError: the folder is missing or not writable, the disk is full, ... ``path`` is then as it was
            and no temporary file is left behind.
    """
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
