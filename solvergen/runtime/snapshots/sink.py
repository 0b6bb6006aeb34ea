"""A file to hand to a library that must not see a write fail.

When the disk is full, the HDF5 library can't close its file any more and may take the interpreter with it
at its next use. Here a failure is remembered, what comes after it is dropped, and the writer asks at the
end.
"""

from __future__ import annotations

from typing import BinaryIO

import numpy as np


class Sink:
    """Looks like a seekable binary file, as h5py wants one, and never raises.

    ``failure`` is the first exception of any kind (a KeyboardInterrupt too, that arrives while the
    library calls back), or None.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.failure: BaseException | None = None

    def check(self) -> None:
        """Raise what went wrong, if something did."""
        if self.failure is not None:
            try:
                raise self.failure
            finally:
                self = None  # type: ignore[assignment]  # no cycle by way of the traceback

    def _fail(self, error: BaseException) -> None:
        # Without its traceback: through the frames there it would keep the callers' HDF5 objects, and some
        # of these crash the interpreter if they are still there when it exits.
        self.failure = error.with_traceback(None)

    def seek(self, offset: int, whence: int = 0) -> int:
        """As of a file; 0 after a failure."""
        try:
            if self.failure is None:
                return self._file.seek(offset, whence)
        except BaseException as error:
            self._fail(error)
        return 0

    def tell(self) -> int:
        """As of a file; 0 after a failure."""
        return self.seek(0, 1)

    def write(self, data: memoryview) -> int:
        """As of a file; says that all was written, whether it was or not."""
        size = memoryview(data).nbytes
        try:
            if self.failure is None:
                self._file.write(data)
        except BaseException as error:
            self._fail(error)
        return size

    def read(self, size: int) -> bytes:
        """As of a file; zeros after a failure. (h5py knows a file by this method, and calls the next.)"""
        target = bytearray(size)
        return bytes(target[: self.readinto(memoryview(target))])

    def readinto(self, target: memoryview) -> int:
        """As of a file; zeros after a failure."""
        view = memoryview(target).cast("B")
        try:
            if self.failure is None:
                return self._file.readinto(view)  # type: ignore[attr-defined, no-any-return]
        except BaseException as error:
            self._fail(error)
        np.frombuffer(view, np.uint8)[:] = 0
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        """As of a file."""
        try:
            if self.failure is None:
                return self._file.truncate(size)
        except BaseException as error:
            self._fail(error)
        return size or 0

    def flush(self) -> None:
        """As of a file."""
        try:
            if self.failure is None:
                self._file.flush()
        except BaseException as error:
            self._fail(error)
