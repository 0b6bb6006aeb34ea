"""The errors of parameters: findings about them, and a file that can't be read."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

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


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """All of a file. Raises UnreadableParameters."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise UnreadableParameters(error.errno, error.strerror or str(error), os.fspath(path)) from error
