"""The error of nets."""

from __future__ import annotations

from solvergen.errors import SolvergenError


class NetError(SolvergenError):
    """A net can't be made, or isn't one that can be trained."""
