"""Whether a file can be what ``torch.save`` writes, seen before torch reads it."""

from __future__ import annotations

import os
import struct
import zipfile

from solvergen.errors import SolverFileError
from solvergen.solver.files.reading import stranger

_ARCHIVE = b"PK\x03\x04"
_PICKLE = b"\x80"
"""What ``torch.save`` began with before it wrote archives."""

_MOST_MORE = 100
_SMALL = 1 << 20


def check_file(path: str) -> None:
    """Raises SolverFileError for a file that torch doesn't write, and OSError."""
    with open(path, "rb") as file:
        head = file.read(520)
    if not head:
        raise SolverFileError("empty")
    if head.startswith(_ARCHIVE):
        _check_archive(path)
    elif not head.startswith(_PICKLE):
        what = stranger(head)
        raise SolverFileError(
            f"not of torch.save but {what}" if what else "not what torch.save writes: damaged or foreign"
        )


def _check_archive(path: str) -> None:
    """Raises SolverFileError for an archive of something else, and for one that would become far more than it
    is; torch compresses none."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            inside = sum(member.file_size for member in members)
    except (
        zipfile.BadZipFile,
        struct.error,
        ArithmeticError,
        LookupError,
        ValueError,
        RuntimeError,
        EOFError,
    ):
        return  # torch says what is wrong with it
    size = os.stat(path).st_size
    if inside > max(_SMALL, _MOST_MORE * size):
        raise SolverFileError(f"{size} bytes that would become {inside}: damaged or foreign")
    names = {member.filename.rpartition("/")[2] for member in members}
    if "constants.pkl" in names:
        raise SolverFileError(
            "a TorchScript archive, a program, and it isn't read: save the state_dict of the module"
        )
    if "data.pkl" not in names:
        raise SolverFileError("a zip archive of something else than torch.save's (numpy.savez's, perhaps)")
