"""The spec reader refuses hyperparameters that would hide an attribute; it can't ask the runtime itself."""

from __future__ import annotations

from solvergen.runtime.groups import MULTIPLIERS, Group
from solvergen.runtime.optimizer import Optimizer
from solvergen.spec.names import OPTIMIZER_ATTRIBUTES


def public(cls):
    return {name for name in dir(cls) if not name.startswith("_")}


def test_every_attribute_is_refused_as_a_hyperparameter():
    taken = public(Optimizer) | public(Group) | set(MULTIPLIERS) | {"params", "definition"}
    assert taken - set(OPTIMIZER_ATTRIBUTES) - {"backend", "nonfinite"} == set()
