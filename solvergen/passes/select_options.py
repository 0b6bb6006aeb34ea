"""Choices between options become guarded statements.

``where(amsgrad, v_max, v)`` reads a buffer that doesn't exist without the option, so the choice must
be made by whether code is there, not by a select at run time. After this pass no ``where`` has a
condition made of options alone.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.ir.describe import describe
from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard, guard_of
from solvergen.ir.nodes import Call, Expression, Name
from solvergen.ir.program import Assign, Program, Role, Symbol


def select_options(program: Program) -> Program:
    """Replace each choice by options with a temporary that is assigned under two guards."""
    worker = _Worker(program)
    for number, statement in enumerate(program.statements):
        worker.statement(replace(statement, part=number))
    return replace(program, statements=tuple(worker.statements), symbols=(*program.symbols, *worker.symbols))


class _Worker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.names = FreshNames(s.name for s in program.symbols)
        self.statements: list[Assign] = []
        self.symbols: list[Symbol] = []

    def statement(self, statement: Assign) -> None:
        if statement.guard.is_never:
            return
        value = statement.value
        choice = self._condition(value)
        if choice is None:
            self.statements.append(replace(statement, value=self._lift(value, statement)))
            return
        assert isinstance(value, Call)
        for guard, branch in ((choice, value.args[1]), (~choice, value.args[2])):
            self.statement(replace(statement, value=branch, guard=statement.guard & guard))

    def _condition(self, e: Expression) -> Guard | None:
        """The guard of ``e``, if it is a ``where`` by options alone."""
        if not (isinstance(e, Call) and e.function == "where"):
            return None
        return guard_of(e.args[0], self.program.options)

    def _lift(self, e: Expression, statement: Assign) -> Expression:
        choice = self._condition(e)
        if choice is None:
            operands = tuple(self._lift(operand, statement) for operand in e.operands)
            changed = any(new is not old for new, old in zip(operands, e.operands, strict=True))
            return e.with_operands(operands) if changed else e
        target = self.names.take(describe(e, f"{statement.target}_choice"))
        self.symbols.append(Symbol(target, Role.TEMPORARY, statement.guard, e.type, e.location))
        self.statement(replace(statement, target=target, value=e))
        return Name(target, type=e.type, location=e.location)
