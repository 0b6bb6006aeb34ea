"""How Caffe completes ``snapshot_prefix`` when it reads parameters from a file."""

from __future__ import annotations

import os
from pathlib import Path

from solvergen.solver.parameters.model import SolverParameters


def completed_prefix(params: SolverParameters, path: str | os.PathLike[str] | None) -> SolverParameters:
    """The parameters with a whole prefix: a missing one is the file's path without its ending, and one that
    is a folder gets the file's name without its ending. Without a path nothing is completed."""
    if path is None:
        return params
    if not params.has("snapshot_prefix"):
        prefix = os.path.splitext(os.fspath(path))[0]
    elif os.path.isdir(params.snapshot_prefix or ""):  # not Path's, which raises for a name that is too long
        prefix = os.path.join(params.snapshot_prefix or "", Path(path).stem)
    else:
        return params
    return params.replaced(snapshot_prefix=prefix)
