"""Where log lines go: to a stream or to the end of a file. A log that can't be written ends no training."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TextIO

from solvergen.solver.logs.reading import LogError

Sink = Callable[[str], None]


class LineFile:
    """Appends lines to a file, each at once, so that a killed process leaves what it told.

    Whoever opens one closes it; a ``with`` statement does. Lines that come afterwards are written nowhere.

    Should writing fail in the middle of a run (a full disk), that is said once on stderr and the log ends;
    the training doesn't.
    """

    def __init__(self, path: str | Path) -> None:
        """Open ``path``, which may hold the log of an earlier part of the run.

        Raises:
            LogError: it can't be opened.
        """
        self.path = Path(path)
        try:
            # Binary, unbuffered: a line is one write.
            self._file: IO[bytes] | None = self.path.open("ab+", buffering=0)
            if self._file.seek(0, 2):
                self._file.seek(-1, 2)
                if self._file.read(1) != b"\n":  # of a process that was killed in the middle of a line
                    self._file.write(b"\n")
        except OSError as error:
            raise LogError(f"{self.path}: the log can't be written: {error.strerror or error}") from error

    def __call__(self, line: str) -> None:
        """Write one line."""
        if self._file is None:
            return
        try:
            # A name from a file may hold bytes that aren't UTF-8, a path too.
            self._file.write(f"{line}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            self.close()
            to_stderr(f"solvergen: {self.path}: the log ends here: {error.strerror or error}")

    def __enter__(self) -> LineFile:
        """Itself, to be closed at the end of the ``with`` statement."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Write no more."""
        if self._file is not None:
            file, self._file = self._file, None
            file.close()


def to_stderr(line: str) -> None:
    """Print a line on stderr; nowhere if that is gone, as a terminal is after it was hung up."""
    try:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()
    except OSError:
        _give_up(sys.stderr)
    except (ValueError, AttributeError):  # closed, or taken away
        return


def _give_up(stream: TextIO) -> None:
    """Let a stream lead nowhere: what it still holds would be tried again, and fail, when Python ends."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class Unfailing:
    """A stream that takes what is written after its terminal is gone, and does nothing with it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, if that can be done."""
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, if that can be done."""
        try:
            self._stream.flush()
        except OSError:
            _give_up(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
