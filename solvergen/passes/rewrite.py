"""Helpers that passes share: rebuilding expressions, and names that nobody has taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from solvergen.ir.nodes import Expression, Name, Number, Round


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
    return isinstance(expression, (Name, Number))


class FreshNames:
    """Hands out names that are not taken, as close as possible to the one wished for."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    def take(self, wish: str) -> str:
        """``wish``, or it with a number behind it; taken from now on."""
        name, number = wish, 2
        while name in self._taken:
            name = f"{wish}_{number}"
            number += 1
        self._taken.add(name)
        return name
