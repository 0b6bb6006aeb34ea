"""The Solver's files: models and solvers' states in Caffe's two formats and in one of our own.

``read_model``, ``read_state`` and ``read_pair`` read any of them; ``write_pair`` writes a snapshot, model and
state, whole or not at all; ``probe_writable`` is Caffe's test at the start. ``docs/solver.md`` has the rest.
"""

from __future__ import annotations

from solvergen.solver.files.data import LayerData, ModelData, SolverStateData
from solvergen.solver.files.history import arranged, fitted, flattened, history_names
from solvergen.solver.files.pair import probe_writable, write_model, write_pair, write_state
from solvergen.solver.files.reading import kind_of, read_model, read_pair, read_state

__all__ = [
    "LayerData",
    "ModelData",
    "SolverStateData",
    "arranged",
    "fitted",
    "flattened",
    "history_names",
    "kind_of",
    "probe_writable",
    "read_model",
    "read_pair",
    "read_state",
    "write_model",
    "write_pair",
    "write_state",
]
