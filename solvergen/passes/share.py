"""Common subexpressions are computed once, under names that say what they are.

Two expressions are common if they are the same tree over the same names: nothing is reordered, so
sharing cannot change a bit. A shared value is placed before its first use, where any use exists.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from solvergen.ir.describe import describe
from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Name, Round, Stored, Unary
from solvergen.ir.program import Assign, Program, Role, Symbol
from solvergen.passes.rewrite import is_atomic


def share(program: Program) -> Program:
    """Name every expression that occurs more than once."""
    program = _reuse_definitions(program)
    counts: Counter[Expression] = Counter()
    guards: dict[Expression, Guard] = {}
    seen: set[Expression] = set()
    for statement in program.statements:
        _count(statement.value, statement.guard, counts, guards, seen)
    common = {e for e, count in counts.items() if count > 1}
    names = FreshNames(s.name for s in program.symbols)
    statements: list[Assign] = []
    symbols: list[Symbol] = []
    chosen: dict[Expression, Name] = {}

    def replaced(e: Expression, statement: Assign) -> Expression:
        if e in chosen:
            return chosen[e]
        operands = tuple(replaced(operand, statement) for operand in e.operands)
        changed = any(new is not old for new, old in zip(operands, e.operands, strict=True))
        new = e.with_operands(operands) if changed else e
        if e not in common:
            return new
        name = names.take(describe(e, f"{statement.target}_part"))
        guard = guards[e]
        statements.append(Assign(name, new, guard, "", e.location))
        symbols.append(Symbol(name, Role.TEMPORARY, guard, e.type, e.location))
        chosen[e] = Name(name, type=e.type, location=e.location)
        return chosen[e]

    for statement in program.statements:
        value = replaced(statement.value, statement)
        statements.append(replace(statement, value=value))
    return replace(program, statements=tuple(statements), symbols=(*program.symbols, *symbols))


def _sharable(e: Expression) -> bool:
    if is_atomic(e) or isinstance(e, (Round, Stored)) or (e.type is not None and e.type.is_bool):
        return False
    return not (isinstance(e, Unary) and is_atomic(e.operand))


def _count(
    e: Expression,
    guard: Guard,
    counts: Counter[Expression],
    guards: dict[Expression, Guard],
    seen: set[Expression],
) -> None:
    """Count uses by distinct parents, so that only the largest common expressions are named."""
    if _sharable(e):
        counts[e] += 1
    guards[e] = guards[e] | guard if e in guards else guard
    if e in seen:
        for operand in e.operands:
            _widen(operand, guard, guards)
        return
    seen.add(e)
    for operand in e.operands:
        _count(operand, guard, counts, guards, seen)


def _widen(e: Expression, guard: Guard, guards: dict[Expression, Guard]) -> None:
    guards[e] = guards[e] | guard if e in guards else guard
    for operand in e.operands:
        _widen(operand, guard, guards)


def _reuse_definitions(program: Program) -> Program:
    """An expression that has a name already is read by that name."""
    defined: dict[Expression, tuple[str, Guard]] = {}
    statements: list[Assign] = []
    targets = Counter(s.target for s in program.statements)
    types = {s.name: s.type for s in program.symbols}

    def replaced(e: Expression, guard: Guard) -> Expression:
        known = defined.get(e)
        if known is not None and guard.implies(known[1]):
            return Name(known[0], type=e.type, location=e.location)
        operands = tuple(replaced(operand, guard) for operand in e.operands)
        changed = any(new is not old for new, old in zip(operands, e.operands, strict=True))
        return e.with_operands(operands) if changed else e

    for statement in program.statements:
        value = replaced(statement.value, statement.guard)
        statements.append(replace(statement, value=value))
        if (
            targets[statement.target] == 1
            and _sharable(statement.value)
            and types[statement.target] == statement.value.type
        ):
            defined.setdefault(statement.value, (statement.target, statement.guard))
            defined.setdefault(value, (statement.target, statement.guard))
    return replace(program, statements=tuple(statements))
