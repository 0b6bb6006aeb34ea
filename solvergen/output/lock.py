"""One build at a time in a folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from solvergen.errors import OutputError
from solvergen.output.paths import LOCK

_PAUSE = 0.05  # seconds between two tries


@contextlib.contextmanager
def locked(folder: Path, *, timeout: float) -> Iterator[None]:
    """Hold ``folder``'s lock; wait up to ``timeout`` seconds for a build that has it.

    The lock is the kernel's (``flock`` on a small file), so a build that was killed never leaves it held.
    The file goes when the lock does.

    Raises:
        OutputError: another build still has the lock after ``timeout``.
    """
    path = folder / LOCK
    end = time.monotonic() + timeout
    while (descriptor := _try_to_lock(path)) is None:
        if time.monotonic() >= end:
            raise OutputError(
                f"another build has been writing into {folder} for {timeout:.0f} s; "
                "try again when it has finished",
                paths=(str(path),),
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        # Unlinked while still locked: whoever opened this file in the meantime finds that the path has
        # another one, or none, and starts over.
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)


def _try_to_lock(path: Path) -> int | None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held, there = os.fstat(descriptor), os.stat(path)
        if (held.st_dev, held.st_ino) == (there.st_dev, there.st_ino):
            return descriptor
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None
