"""Every name is assigned once under any setting of the options.

A buffer's own name keeps meaning its value before the update; each assignment gets a new name.
Where a statement exists only under some settings, the others get a copy of the value before, so
that a read always finds one name. Assignments to buffers become explicit roundings to storage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Name, Stored
from solvergen.ir.program import Assign, Level, Program, Result, Role, Symbol
from solvergen.passes.rewrite import rebuild


def single_assignment(program: Program) -> Program:
    """Rename targets so that each is assigned once; list what buffers hold at the end."""
    worker = _Worker(program)
    last = {_key(i, s): i for i, s in enumerate(program.statements)}
    for index, statement in enumerate(program.statements):
        key = _key(index, statement)
        worker.assign(key, statement)
        if last[key] == index:
            worker.finish(key, statement)
    return replace(
        program,
        level=Level.OPTIMISED,
        statements=tuple(worker.statements),
        symbols=tuple(worker.symbols),
        results=worker.results(),
    )


def _key(index: int, statement: Assign) -> tuple[str, object]:
    """The same for the branches that one statement was split into: they are one assignment."""
    return statement.target, ("alone", index) if statement.part is None else statement.part


@dataclass
class _Pending:
    name: str
    guard: Guard


class _Worker:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.roles = {s.name: s.role for s in program.symbols}
        self.types = {s.name: s.type for s in program.symbols}
        self.names = FreshNames(self.roles)
        fixed = [s for s in program.symbols if s.role is not Role.TEMPORARY]
        self.symbols = list(fixed)
        self.current = {s.name: s.name for s in fixed}
        self.domain = {s.name: s.guard for s in fixed}
        self.changed: dict[str, Guard] = {}
        self.pending: dict[tuple[str, object], _Pending] = {}
        self.statements: list[Assign] = []

    def assign(self, key: tuple[str, object], statement: Assign) -> None:
        target, role = statement.target, self.roles[statement.target]
        value = rebuild(statement.value, self._renamed)
        if role.is_buffer and role is not Role.GRAD:
            value = Stored(target, value, type=value.type, location=statement.location)
        pending = self.pending.get(key)
        if pending is None:
            self.pending[key] = pending = _Pending(self._name(target, role), statement.guard)
        else:
            pending.guard = pending.guard | statement.guard
        self.statements.append(replace(statement, target=pending.name, value=value))

    def finish(self, key: tuple[str, object], statement: Assign) -> None:
        """The assignment is complete: from here on its name is the target's."""
        pending, target = self.pending.pop(key), statement.target
        never = Guard.never(self.program.options)
        before = self.domain.get(target, never) & ~pending.guard
        if not before.is_never:
            copy = Name(self.current[target], type=self.types[target], location=statement.location)
            self.statements.append(Assign(pending.name, copy, before, "", statement.location))
        self.current[target] = pending.name
        self.domain[target] = before | pending.guard
        self.changed[target] = self.changed.get(target, never) | pending.guard
        symbol = Symbol(
            pending.name, Role.TEMPORARY, self.domain[target], self.types[target], statement.location
        )
        self.symbols.append(symbol)

    def results(self) -> tuple[Result, ...]:
        return tuple(
            Result(s.name, self.current[s.name], guard)
            for s in self.program.symbols
            if s.role is not Role.TEMPORARY and (guard := self._written(s)) is not None
        )

    def _written(self, symbol: Symbol) -> Guard | None:
        changed = self.changed.get(symbol.name)
        written = self.program.writes_grad if symbol.role is Role.GRAD else changed
        return None if changed is None else written

    def _name(self, target: str, role: Role) -> str:
        if role is not Role.TEMPORARY:
            return self.names.take(f"{target}_new")
        return target if target not in self.current else self.names.take(f"{target}_next")

    def _renamed(self, e: Expression) -> Expression:
        if isinstance(e, Name) and self.current.get(e.name, e.name) != e.name:
            return replace(e, name=self.current[e.name])
        return e
