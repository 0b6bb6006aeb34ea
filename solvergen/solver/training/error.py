"""The error of the training loop."""

from __future__ import annotations

from solvergen.errors import SolvergenError


class TrainingError(SolvergenError):
    """The Solver can't be made of these parts, or can't do this now."""
