"""The names of a spec: what each stands for, of what type, and where it was defined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.errors import Location
from solvergen.ir.guards import Guard
from solvergen.ir.program import Role, Symbol
from solvergen.ir.reductions import RANKS
from solvergen.ir.types import ELEMENT_REAL, SCALAR_BOOL, SCALAR_INT, SCALAR_REAL, Kind, Type

if TYPE_CHECKING:
    from solvergen.spec.model import Spec

ASSIGNABLE = (
    Role.PARAM,
    Role.STATE,
    Role.SCALAR_STATE,
    Role.SHARED_STATE,
    Role.LINE_STATE,
    Role.TEMPORARY,
)
"""What may stand left of the ``=``."""

DESCRIPTIONS = {
    Role.HYPERPARAMETER: "a hyperparameter",
    Role.OPTION: "an option",
    Role.T: "the count of updates",
    Role.PARAM: "the parameter",
    Role.GRAD: "the gradient",
    Role.STATE: "state",
    Role.SCALAR_STATE: "scalar state",
    Role.SHARED_STATE: "shared state",
    Role.LINE_STATE: "state of lines",
    Role.TEMPORARY: "a temporary",
}


@dataclass(frozen=True)
class Scope:
    """The declared symbols of a spec, in the order that ``Program`` wants. Temporaries come later."""

    options: tuple[str, ...]
    symbols: dict[str, Symbol]

    @property
    def types(self) -> dict[str, Type | None]:
        """Each name's type."""
        return {name: symbol.type for name, symbol in self.symbols.items()}

    def role(self, name: str) -> Role:
        """What ``name`` stands for; names not declared are temporaries."""
        return self.symbols[name].role if name in self.symbols else Role.TEMPORARY


def scope_of(spec: Spec, guards: dict[str, Guard]) -> Scope:
    """The symbols that ``spec`` declares. ``guards``: under which options each state exists."""
    options = spec.option_names
    always = Guard.always(options)
    symbols: dict[str, Symbol] = {}

    def declare(name: str, role: Role, type: Type, location: Location | None = None) -> None:
        symbols.setdefault(name, Symbol(name, role, guards.get(name, always), type, location))

    declare("param", Role.PARAM, ELEMENT_REAL)
    declare("grad", Role.GRAD, ELEMENT_REAL)
    for state in spec.state:
        if state.is_scalar:
            declare(state.name, Role.SCALAR_STATE, SCALAR_REAL, state.location)
        elif state.is_shared:
            declare(state.name, Role.SHARED_STATE, SCALAR_REAL, state.location)
        elif state.is_of_lines:
            declare(state.name, Role.LINE_STATE, Type(Kind.REAL, RANKS[state.shape]), state.location)
        else:
            declare(state.name, Role.STATE, ELEMENT_REAL, state.location)
    for h in spec.hyperparameters:
        declare(h.name, Role.HYPERPARAMETER, SCALAR_INT if h.integer else SCALAR_REAL, h.location)
    declare("t", Role.T, SCALAR_INT)
    for option in spec.options:
        declare(option.name, Role.OPTION, SCALAR_BOOL, option.location)
    return Scope(options, symbols)
