"""Which format a path means, and opening a file for reading with nothing taken on trust."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from solvergen.errors import SnapshotError
from solvergen.runtime.snapshots import hdf5_format, safetensors_format
from solvergen.runtime.snapshots.container import Container, Format

FORMATS: tuple[Format, ...] = (hdf5_format, safetensors_format)
"""All formats."""

# Beginnings of files that people mistake for snapshots.
_STRANGERS = (
    (b"PK\x03\x04", "a zip archive, as torch.save and numpy.savez write"),
    (b"\x93NUMPY", "a NumPy .npy file"),
    (b"\x80", "a pickle; those are never loaded, since they can run any program"),
    (b"\x1f\x8b", "a gzip archive: unpack it first"),
)

_TRIES = 1000
"""How often a file may be replaced while it is being opened."""


def format_of(path: str) -> Format:
    """The format that the path's suffix names, in lower or upper case.

    Raises:
        SnapshotError: none of the known ones.
    """
    for known in FORMATS:
        if path.lower().endswith(known.SUFFIXES):
            return known
    suffixes = ", ".join(f"{suffix} ({known.NAME})" for known in FORMATS for suffix in known.SUFFIXES)
    raise SnapshotError(f"the name's suffix decides the format; known are {suffixes}")


@contextmanager
def opened(path: str) -> Iterator[tuple[Format, int, Container]]:
    """The file's format, size and open container.

    The formats' libraries open ``path`` once more, and another process may have replaced the file by
    then. Only if the path still leads to the file that was looked at did they open the same one (a file
    that was replaced doesn't come back), so otherwise all of it is done again.

    Raises:
        SnapshotError: not a regular file, not what its suffix says, damaged.
        OSError: as the system says.
    """
    expected = format_of(path)
    # Not blocking: a pipe must not hang us before we can see that it is one.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    for _ in range(_TRIES):
        with ExitStack() as stack:
            file = stack.enter_context(open(os.open(path, flags), "rb"))
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SnapshotError("not a regular file")
            _check_content(file.read(16), file.read(496 + 16), expected)
            file.seek(0)
            try:
                container = stack.enter_context(expected.opened(path, file, status.st_size))
            except SnapshotError:
                if _is_at(path, status):
                    raise
                continue
            if _is_at(path, status):
                yield expected, status.st_size, container
                return
    raise SnapshotError("it is replaced again and again while it is being read")


def _is_at(path: str, status: os.stat_result) -> bool:
    """Whether ``path`` leads to the file of ``status``."""
    try:
        now = os.stat(path)
    except FileNotFoundError:
        return False
    return (now.st_dev, now.st_ino) == (status.st_dev, status.st_ino)


def _check_content(head: bytes, rest: bytes, expected: Format) -> None:
    """Say so where the content is plainly of another kind than the suffix says."""
    if not head:
        raise SnapshotError("empty")
    found: Format | None = None
    if b"\x89HDF\r\n\x1a\n" in (head[:8], (head + rest)[512:520]) or head.startswith(b"solvergen"):
        found = hdf5_format
    elif head[8:9] == b"{":
        found = safetensors_format
    if found is expected:
        return
    if found is not None:
        raise SnapshotError(
            f"a file of the format {found.NAME} whose name says {expected.NAME}: "
            f"rename it to end in {found.SUFFIXES[0]}"
        )
    for beginning, what in _STRANGERS:
        if head.startswith(beginning):
            raise SnapshotError(f"not a snapshot but {what}")
