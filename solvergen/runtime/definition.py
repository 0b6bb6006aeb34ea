"""What a generated package says about its optimizer.

``solvergen build`` writes one ``Definition`` an optimizer (``<name>/schema.py``). It is all that the
runtime knows of a rule: names, ranges, the host program and the NumPy reference as plain functions,
and the folder in which the kernels' texts lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from solvergen.errors import OptimizerError

Initial = float | Literal["param"]
"""The initial value of a state: a number, or a copy of the parameter."""


@dataclass(frozen=True, slots=True)
class Hyperparameter:
    """A hyperparameter and the values that it may take.

    ``min`` and ``max`` are allowed themselves, ``above`` and ``below`` are not; None is no limit.
    An ``integer`` hyperparameter must be a whole number; it is held as a float like any other.
    """

    name: str
    default: float
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    integer: bool = False
    doc: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """A compile-time option. A ``default`` of None means derived: ``Definition.options_of`` decides."""

    name: str
    default: bool | None
    doc: str = ""


@dataclass(frozen=True, slots=True)
class State:
    """A state: an array shaped as its parameter (``"param"``) or one float a tensor (``"scalar"``)."""

    name: str
    shape: Literal["param", "scalar"] = "param"
    doc: str = ""


@dataclass(frozen=True, eq=False)
class Definition:
    """An optimizer as the runtime sees it. Compared by identity: there is one a generated package.

    ``spec`` is the path of the spec as it was given to the compiler (for messages only), ``digest``
    the sha256 of its semantic content, ``folder`` the directory that holds ``kernel.c`` and
    ``kernel.cu``. ``table`` names the columns of the kernels' table of scalars.

    The functions, all of plain floats and bools given by keyword unless said otherwise:

    ``options_of(**hyperparameters)``: the derived options, {} if there are none.
    ``constraints(**hyperparameters, **options)``: None, or what is wrong.
    ``active_state(**options)``: names of the states that exist, in the order of ``state``.
    ``buffers_read(**options)``, ``buffers_written(**options)``: names of the buffers (``param``, ``grad``,
    array states) that an update reads and writes, once for each pass over the elements.
    ``initial_state(**hyperparameters, **options)``: name to number or ``"param"``, for all states.
    ``scalars(**hyperparameters, **options, t=, **scalar_states)``: a row of the table in float64, and
    the new values of the scalar states.
    ``update(param, grad, *array_states, *scalar_states, *hyperparameters, t, *options, real, rounded)``,
    all by position: the new parameter, array states and scalar states, in this order. Elements are
    arrays of the compute type ``real``; ``rounded`` rounds to the parameter's storage type and back.
    States that don't exist under the options are None, as argument and as result.
    """

    name: str
    class_name: str
    spec: str
    digest: str
    folder: str
    hyperparameters: tuple[Hyperparameter, ...]
    options: tuple[Option, ...]
    state: tuple[State, ...]
    table: tuple[str, ...]
    update: Callable[..., tuple[Any, ...]]
    scalars: Callable[..., tuple[tuple[float, ...], dict[str, float]]]
    options_of: Callable[..., dict[str, bool]]
    constraints: Callable[..., str | None]
    active_state: Callable[..., tuple[str, ...]]
    buffers_read: Callable[..., tuple[str, ...]]
    buffers_written: Callable[..., tuple[str, ...]]
    initial_state: Callable[..., dict[str, Initial]]

    @cached_property
    def array_states(self) -> tuple[str, ...]:
        """Names of the states shaped as the parameter: the kernels' buffers after ``param, grad``."""
        return tuple(s.name for s in self.state if s.shape == "param")

    @cached_property
    def scalar_states(self) -> tuple[str, ...]:
        """Names of the states that are one float a tensor."""
        return tuple(s.name for s in self.state if s.shape == "scalar")

    @cached_property
    def hyperparameter_names(self) -> tuple[str, ...]:
        """Names of the hyperparameters, in the order of the spec."""
        return tuple(h.name for h in self.hyperparameters)

    @cached_property
    def option_names(self) -> tuple[str, ...]:
        """Names of the options, in the order of the spec."""
        return tuple(o.name for o in self.options)


def definition_of(cls: type[Any]) -> Definition:
    """The definition of an optimizer's class. Raises OptimizerError for one that has none."""
    definition: Definition | None = getattr(cls, "definition", None)
    if definition is None:
        raise OptimizerError(
            f"{cls.__name__} has no rule of its own; use a generated optimizer, as solvergen.optimizers.Adam"
        )
    return definition
