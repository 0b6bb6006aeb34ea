"""A Solver's parameters, from what it is given."""

from __future__ import annotations

import os

from solvergen.solver.parameters.error import SolverParametersError
from solvergen.solver.parameters.findings import errors_of
from solvergen.solver.parameters.model import SolverParameters

_OF_NETS = frozenset(
    {
        "net",
        "net_param",
        "train_net",
        "train_net_param",
        "test_net",
        "test_net_param",
        "train_state",
        "test_state",
        "test_iter",
        "test_interval",
    }
)


def read_parameters(params: SolverParameters | str | os.PathLike[str]) -> SolverParameters:
    """Themselves, or those of a file, prototxt or YAML by its ending.

    Raises SolverParametersError, and UnreadableParameters for a file that can't be read.
    """
    return params if isinstance(params, SolverParameters) else SolverParameters.read(params)


def check_parameters(params: SolverParameters) -> None:
    """Raises SolverParametersError for what Caffe would refuse. What is said of nets isn't looked at: they
    are here already."""
    told = params if params.train_net_source is not None else params.replaced(net="made by the caller")
    errors = [finding for finding in errors_of(told.check()) if finding.field not in _OF_NETS]
    if errors:
        raise SolverParametersError(errors)
