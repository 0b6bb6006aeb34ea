"""The Solver: what Caffe's solver does, on any model.

Names are imported when they are first asked for, so that each costs only what it needs itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "SolverParameters": "solvergen.solver.parameters.model",
    "SolverParametersError": "solvergen.solver.parameters.error",
    "UnknownParameter": "solvergen.solver.parameters.error",
    "NetState": "solvergen.solver.parameters.net_state",
    "NetSource": "solvergen.solver.parameters.net_state",
    "TestNet": "solvergen.solver.parameters.net_state",
    "Finding": "solvergen.solver.parameters.findings",
    "Policy": "solvergen.solver.policies",
    "policy_of": "solvergen.solver.policies",
    "Choice": "solvergen.solver.choice",
    "chosen": "solvergen.solver.choice",
    "register_optimizer": "solvergen.solver.registry",
    "Solver": "solvergen.solver.training.solver",
    "seed_all": "solvergen.solver.training.seeding",
    "Action": "solvergen.solver.training.events",
    "Blob": "solvergen.solver.net.protocol",
    "LayerBlobs": "solvergen.solver.net.protocol",
    "Net": "solvergen.solver.net.protocol",
    "Output": "solvergen.solver.net.protocol",
    "DenseNet": "solvergen.solver.net.dense",
    "InnerProduct": "solvergen.solver.net.dense",
    "CaffeLog": "solvergen.solver.logs.caffe_log",
    "JsonLines": "solvergen.solver.logs.json_lines",
    "LineFile": "solvergen.solver.logs.sinks",
    "read_log": "solvergen.solver.logs.reading",
    "handled": "solvergen.solver.signals",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
