"""Optimizers by the names of their classes: solvergen's own, and those that a program adds."""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

from solvergen.errors import OptimizerError
from solvergen.runtime.definition import Definition, definition_of
from solvergen.runtime.naming import quoted
from solvergen.runtime.optimizer import Optimizer
from solvergen.solver.files.history import SPEC_OF_TYPE

T = TypeVar("T", bound=type[Optimizer])

_ADDED: dict[str, type[Optimizer]] = {}


def register_optimizer(cls: T) -> T:
    """Let solver parameters name this class in ``optimizer``; a decorator, too.

    For optimizers that ``solvergen build`` has made of specs of your own. Registering a class of the same
    name again takes the place of the former one.

    Raises OptimizerError for what is no generated optimizer, and for a name that one of solvergen's or of
    Caffe's solvers has.
    """
    if not (isinstance(cls, type) and issubclass(cls, Optimizer)):
        raise OptimizerError(f"{cls!r:.60} is no optimizer's class: give one that solvergen has generated")
    definition_of(cls)
    name = cls.__name__
    if name in _own_names():
        if cls is not getattr(import_module("solvergen.optimizers"), name):
            raise OptimizerError(
                f"solvergen has an optimizer {quoted(name)} already: give yours another name"
            )
        return cls
    if name in SPEC_OF_TYPE:
        raise OptimizerError(
            f"{quoted(name)} is a solver type of Caffe's, and files couldn't tell the two: give yours "
            "another name"
        )
    _ADDED[name] = cls
    return cls


def optimizer_names() -> tuple[str, ...]:
    """The names of all that are known."""
    return (*_own_names(), *_ADDED)


def find_optimizer(name: str) -> type[Optimizer] | None:
    """The class of a name; None if it isn't known."""
    if name in _own_names():
        found: type[Optimizer] = getattr(import_module("solvergen.optimizers"), name)
        return found
    return _ADDED.get(name)


def optimizer_of_spec(spec: str) -> type[Optimizer] | None:
    """The class that was generated from the spec of this name; None if it isn't known."""
    try:
        definition: Definition = import_module(f"solvergen.optimizers.{spec}.schema").DEFINITION
    except ImportError:
        return next((cls for cls in _ADDED.values() if definition_of(cls).name == spec), None)
    return find_optimizer(definition.class_name)


def _own_names() -> tuple[str, ...]:
    return tuple(import_module("solvergen.optimizers").__all__)
