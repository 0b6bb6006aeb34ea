"""What a file format is to the rest of this package: how arrays and one document get in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.snapshots.arrays import ArraySpec

Arrays = Sequence[tuple[ArraySpec, HostArray]]
"""Arrays to write, in the order in which they are laid down."""


class Container(Protocol):
    """An open file whose structure has been read."""

    document: bytes
    """The document's text; its checksum has been verified."""

    version: int
    """The format that the file says that it is written in."""

    def check(self, specs: Mapping[str, ArraySpec]) -> None:
        """Whether the file holds exactly these arrays, all bytes of them. Raises ``SnapshotError``."""
        ...

    def read(self, spec: ArraySpec) -> HostArray:
        """An array that ``check`` has passed; the caller verifies its checksum. Raises ``SnapshotError``."""
        ...


class Format(Protocol):
    """One file format: a module of this package that has these names."""

    NAME: str
    SUFFIXES: tuple[str, ...]

    def write(self, path: str, arrays: Arrays, document: bytes, version: int) -> None:
        """Fill the new, empty file at ``path``; ``version`` is the document's. Raises ``SnapshotError`` and
        ``OSError``."""
        ...

    def opened(self, path: str, file: BinaryIO, size: int) -> AbstractContextManager[Container]:
        """Read the structure of ``file``, which is ``path`` opened and ``size`` bytes long.

        Raises ``SnapshotError`` and ``OSError``.
        """
        ...
