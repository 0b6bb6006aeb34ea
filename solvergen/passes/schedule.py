"""The last pass: scalars to the host, elements into the fewest sweeps over memory.

An elementwise rule is one sweep. (Reductions, when the language has them, cut it.)
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Call, Compare, Expression, Name, Number, Round, names_in
from solvergen.ir.program import Assign, Program, Role
from solvergen.ir.schedule import Column, Load, Pass, Schedule
from solvergen.ir.types import ELEMENT_BOOL, ELEMENT_REAL, SCALAR_REAL
from solvergen.ir.verify import verify_schedule
from solvergen.passes.describe import describe
from solvergen.passes.rewrite import FreshNames

_GIVEN = (Role.HYPERPARAMETER, Role.T, Role.SCALAR_STATE, Role.OPTION)


def schedule(program: Program) -> Schedule:
    """Split ``program`` into the host's part and its passes over memory."""
    worker = _Worker(program)
    for statement in program.statements:
        worker.statement(statement)
    buffers = program.with_role(Role.PARAM, Role.GRAD, Role.STATE)
    scalar_states = {s.name for s in program.with_role(Role.SCALAR_STATE)}
    stores = tuple(r for r in program.results if r.buffer not in scalar_states)
    read: dict[str, Guard] = {}
    for statement in worker.body:
        for name in names_in(statement.value):
            read[name] = read.get(name, Guard.never(program.options)) | statement.guard
    for store in stores:
        read[store.name] = read.get(store.name, Guard.never(program.options)) | store.guard
    loads = tuple(Load(b.name, read[b.name]) for b in buffers if b.name in read)
    sweep = Pass(loads, tuple(worker.body), stores, "the whole update is elementwise: one pass")
    return verify_schedule(
        Schedule(
            program.name,
            program.options,
            tuple(b.name for b in buffers),
            tuple((s.name, s.guard) for s in program.with_role(*_GIVEN)),
            tuple(worker.host),
            tuple(r for r in program.results if r.buffer in scalar_states),
            tuple(Column(name, guard) for name, guard in worker.columns.items()),
            (sweep,),
            program.allowed,
        )
    )


class _Worker:
    def __init__(self, program: Program) -> None:
        self.options = program.options
        self.elements = {s.name for s in program.symbols if s.type is not None and s.type.is_element}
        self.names = FreshNames(s.name for s in program.symbols)
        self.host: list[Assign] = []
        self.body: list[Assign] = []
        self.columns: dict[str, Guard] = {}
        self._column_of: dict[Expression, str] = {}
        self._entered: dict[str, int] = {}

    def statement(self, statement: Assign) -> None:
        if statement.target in self.elements:
            value = self._element(statement.value, statement.guard)
            self.body.append(replace(statement, value=value))
        else:
            self.host.append(statement)

    def _element(self, e: Expression, guard: Guard) -> Expression:
        """``e`` with every scalar in it read from the table."""
        if isinstance(e, Round):
            if isinstance(e.operand, Number):
                return e
            return Name(self._column(e.operand, guard), type=ELEMENT_REAL, location=e.location)
        if e.type is not None and not e.type.is_element and e.type.is_bool:
            if set(names_in(e)) <= set(self.options) and names_in(e):
                return e
            one, zero = (Number(v, True, type=SCALAR_REAL) for v in (1.0, 0.0))
            flag = Call("where", (e, one, zero), type=SCALAR_REAL, location=e.location)
            column = Name(
                self._column(
                    flag, guard, f"{e.name}_holds" if isinstance(e, Name) else describe(e, "condition")
                ),
                type=ELEMENT_REAL,
            )
            zero_element = Round(Number(0.0, True, type=SCALAR_REAL), type=ELEMENT_REAL)
            return Compare("!=", column, zero_element, type=ELEMENT_BOOL, location=e.location)
        operands = tuple(self._element(operand, guard) for operand in e.operands)
        changed = any(new is not old for new, old in zip(operands, e.operands, strict=True))
        return e.with_operands(operands) if changed else e

    def _column(self, e: Expression, guard: Guard, wish: str | None = None) -> str:
        """The column that holds ``e``; the host defines it if it has no name yet."""
        known = self._column_of.get(e)
        if known is not None:
            self._widen(known, guard)
            return known
        if isinstance(e, Name):
            column = e.name
        else:
            column = self.names.take(wish or describe(e, "scalar"))
            self._entered[column] = len(self.host)
            self.host.append(Assign(column, e, guard, "", e.location))
        self._column_of[e] = column
        self.columns[column] = guard
        return column

    def _widen(self, column: str, guard: Guard) -> None:
        self.columns[column] = self.columns[column] | guard
        if column in self._entered:
            at = self._entered[column]
            self.host[at] = replace(self.host[at], guard=self.host[at].guard | guard)
