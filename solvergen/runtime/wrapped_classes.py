"""The wrapped class beside a generated one, and the way back."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from solvergen.errors import OptimizerError
from solvergen.runtime.definition import Definition, definition_of

if TYPE_CHECKING:
    from solvergen.runtime.optimizer import Optimizer


def unwrapped(cls: type[Any]) -> type[Optimizer]:
    """The class that ``cls``, a wrapped one, wraps."""
    owners = [one for one in cls.__mro__ if "definition" in one.__dict__]
    return owners[1]


def wrapped_class(cls: type[Optimizer]) -> type[Optimizer]:
    """The wrapped class beside ``cls``, a generated one. Raises OptimizerError where there is none."""
    definition = definition_of(cls)
    if "definition" not in cls.__dict__:
        raise OptimizerError(
            f"{cls.__name__} is no generated class, but derived from one: make the wrapped optimizer of "
            f"{definition.class_name}"
        )
    name = f"{cls.__module__}.wrapped"
    try:
        module = import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != name:
            raise
        raise OptimizerError(
            f"{definition.class_name} was built without wrappers: run solvergen build again"
        ) from None
    found: type[Optimizer] = getattr(module, f"Wrapped{definition.class_name}")
    return found


def accumulation_of(cls: type[Any]) -> Definition:
    """The rule that sums gradients up, of the package that ``cls``, a wrapped one, is in."""
    package = unwrapped(cls).__module__.rpartition(".")[0]
    found: Definition = import_module(f"{package}._accumulate.schema").DEFINITION
    return found
