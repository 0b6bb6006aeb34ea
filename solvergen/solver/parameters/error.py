"""The errors of parameters: findings about them, and a file that can't be read."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable

from solvergen.errors import SolvergenError
from solvergen.solver.parameters.findings import Finding, in_order


class SolverParametersError(SolvergenError, ValueError):
    """A solver's parameters are wrong. ``findings`` holds everything that is, in the order of the file."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(in_order(findings))
        super().__init__("\n".join(map(str, self.findings)))


class UnknownParameter(SolverParametersError, TypeError):
    """``SolverParameters`` was given a keyword that is no parameter."""


class UnreadableParameters(SolvergenError, OSError):
    """A solver's file isn't there or can't be read."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


MOST_BYTES = 1 << 26
"""How long a file of parameters, or a net's, is at most: longer ones are something else, such as weights."""


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """All of a file. Raises UnreadableParameters."""
    try:
        with open(path, "rb") as file:
            found = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UnreadableParameters(error.errno, error.strerror or str(error), os.fspath(path)) from error
    except ValueError as error:
        raise UnreadableParameters(errno.EINVAL, str(error), repr(os.fspath(path))) from error
    if len(found) > MOST_BYTES:
        told = f"more than {MOST_BYTES >> 20} MiB, which is no solver file"
        raise UnreadableParameters(errno.EFBIG, told, os.fspath(path))
    return found
