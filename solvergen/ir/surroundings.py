"""The expressions of a spec outside its update."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.ir.nodes import Expression


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition that must hold (``when`` another one does, if that isn't None), and what to say if not."""

    that: Expression
    when: Expression | None
    message: str


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Typed over hyperparameters and options. An initial value of None is a copy of the parameter."""

    derived_options: tuple[tuple[str, Expression], ...]
    constraints: tuple[Constraint, ...]
    initial: tuple[tuple[str, Expression | None], ...]

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """All of them, in order."""
        constraints = (e for c in self.constraints for e in (c.that, c.when))
        found = (*(e for _, e in self.derived_options), *constraints, *(e for _, e in self.initial))
        return tuple(e for e in found if e is not None)
