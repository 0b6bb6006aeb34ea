"""What a spec says outside its update: derived options, constraints, initial values; typed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from solvergen.frontend.resolve import scalar_expression
from solvergen.ir.nodes import Expression, Number
from solvergen.ir.surroundings import Constraint, Surroundings
from solvergen.ir.types import SCALAR_REAL
from solvergen.spec.model import Text

if TYPE_CHECKING:
    from solvergen.spec.model import Spec


def surroundings(spec: Spec) -> Surroundings:
    """The expressions of ``spec`` outside its update. Raises SpecError."""
    return Surroundings(
        derived_options=tuple(
            (o.name, scalar_expression(o.default, spec)) for o in spec.options if isinstance(o.default, Text)
        ),
        constraints=tuple(
            Constraint(
                scalar_expression(c.that, spec),
                scalar_expression(c.when, spec) if c.when is not None else None,
                c.message,
            )
            for c in spec.constraints
        ),
        initial=tuple((s.name, None if s.copies_param else _initial(s.init, spec)) for s in spec.state),
    )


def _initial(init: float | Text, spec: Spec) -> Expression:
    if isinstance(init, Text):
        return scalar_expression(init, spec)
    return Number(init, init.is_integer(), type=SCALAR_REAL)
