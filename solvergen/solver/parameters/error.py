"""The error that holds findings about parameters."""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.errors import SolvergenError
from solvergen.solver.parameters.findings import Finding, in_order


class SolverParametersError(SolvergenError, ValueError):
    """A solver's parameters are wrong. ``findings`` holds everything that is, in the order of the file."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(in_order(findings))
        super().__init__("\n".join(map(str, self.findings)))
