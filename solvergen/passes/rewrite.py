"""What passes share: rebuilding expressions."""

from __future__ import annotations

from collections.abc import Callable

from solvergen.ir.nodes import Expression, Extent, GradientAt, Name, Number, Round


def rebuild(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """``expression`` with ``change`` applied to every node, operands first."""
    operands = expression.operands
    if operands:
        rebuilt = tuple(rebuild(operand, change) for operand in operands)
        if any(new is not old for new, old in zip(rebuilt, operands, strict=True)):
            expression = expression.with_operands(rebuilt)
    return change(expression)


def is_atomic(expression: Expression) -> bool:
    """Costs nothing to repeat: a name, a constant, or one of them rounded."""
    if isinstance(expression, Round):
        return is_atomic(expression.operand)
    return isinstance(expression, (Name, Number, GradientAt, Extent))
