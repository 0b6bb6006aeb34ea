"""Invariants of each level, checked after every pass. A violation is a bug of the compiler."""

from __future__ import annotations

from solvergen.errors import CompilerBug
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Logic,
    Name,
    Number,
    Round,
    Stored,
    Unary,
    walk,
)
from solvergen.ir.program import Assign, Level, Program, Role
from solvergen.ir.schedule import Schedule
from solvergen.ir.types import Kind, Rank


def verify(program: Program, after: str) -> Program:
    """``program``, if it keeps the invariants of its level. Raises CompilerBug, naming the pass ``after``."""
    try:
        _unique_symbols(program)
        for statement in program.statements:
            for node in walk(statement.value):
                _node(node, program.level)
            if program.level is not Level.PARSED:
                _names_known(statement, program)
        if program.level is Level.OPTIMISED:
            _single_assignment(program)
    except _Violation as violation:
        raise CompilerBug(f"{program.name}: after {after}: {violation}") from None
    return program


def verify_schedule(schedule: Schedule) -> Schedule:
    """The scheduled form: names defined before use in each section, one load and store a buffer."""
    try:
        host = dict(schedule.given)
        for statement in schedule.host:
            for node in walk(statement.value):
                if isinstance(node, (Round, Stored)) or (node.type is not None and node.type.is_element):
                    raise _Violation(f"element arithmetic on the host: {statement.target}")
                if isinstance(node, Name):
                    _available(host, node.name, statement.guard, schedule.allowed)
            _define(host, statement)
        columns = [column.name for column in schedule.table]
        if len(set(columns)) != len(columns):
            raise _Violation("a column of the table occurs twice")
        for name, guard in [(c.name, c.guard) for c in schedule.table]:
            _available(host, name, guard, schedule.allowed)
        for result in schedule.scalar_results:
            _available(host, result.name, result.guard, schedule.allowed)
        for sweep in schedule.passes:
            loaded = [load.buffer for load in sweep.loads]
            stored = [store.buffer for store in sweep.stores]
            if len(set(loaded)) != len(loaded) or len(set(stored)) != len(stored):
                raise _Violation("a buffer is read or written twice in one pass")
            known = {load.buffer: load.guard for load in sweep.loads} | {
                c.name: c.guard for c in schedule.table
            }
            for statement in sweep.body:
                for node in walk(statement.value):
                    if isinstance(node, Name) and node.name not in schedule.options:
                        _available(known, node.name, statement.guard, schedule.allowed)
                _define(known, statement)
            for store in sweep.stores:
                _available(known, store.name, store.guard, schedule.allowed)
    except _Violation as violation:
        raise CompilerBug(f"{schedule.name}: after scheduling: {violation}") from None
    return schedule


class _Violation(Exception):
    pass


def _unique_symbols(program: Program) -> None:
    names = [symbol.name for symbol in program.symbols]
    if len(set(names)) != len(names):
        raise _Violation(f"two symbols of one name among {names}")


def _node(node: Expression, level: Level) -> None:
    if level is Level.PARSED:
        if isinstance(node, (Round, Stored)):
            raise _Violation(f"{type(node).__name__} in a parsed program")
        return
    if node.type is None:
        raise _Violation(f"an expression without a type: {node}")
    if isinstance(node, Stored) and level is Level.TYPED:
        raise _Violation("Stored in a typed program")
    if isinstance(node, Binary) and node.op == "**":
        raise _Violation("** after typing")
    if isinstance(node, Round):
        if node.operand.type is None or node.operand.type.is_element or not node.type.is_element:
            raise _Violation("Round must take a scalar to an element")
    elif isinstance(node, Stored):
        if not node.type.is_element:
            raise _Violation("Stored must be an element")
    elif node.operands and not isinstance(node, (Name, Number)):
        _ranks(node)


def _ranks(node: Expression) -> None:
    assert node.type is not None
    operands = node.operands
    if isinstance(node, Call) and node.function == "ipow" and isinstance(operands[1], Number):
        operands = operands[:1]  # the exponent says how often to multiply; it never meets the element
    ranks = {operand.type.rank for operand in operands if operand.type and not operand.type.is_bool}
    if len(ranks) > 1:
        raise _Violation(f"a scalar meets an element without being rounded: {node}")
    if Rank.ELEMENT in ranks and not node.type.is_element:
        raise _Violation(f"a scalar made of elements: {node}")
    wants_bool = isinstance(node, (Logic, Compare)) or (isinstance(node, Unary) and node.op == "not")
    if wants_bool != (node.type.kind is Kind.BOOL):
        raise _Violation(f"wrong kind of result: {node}")
    if isinstance(node, Logic) or (isinstance(node, Unary) and node.op == "not"):
        if not all(operand.type and operand.type.is_bool for operand in node.operands):
            raise _Violation(f"a number used as a condition: {node}")
    elif isinstance(node, Call) and node.function == "where":
        pass
    elif any(operand.type and operand.type.is_bool for operand in node.operands):
        raise _Violation(f"a condition used as a number: {node}")


def _names_known(statement: Assign, program: Program) -> None:
    names = {symbol.name for symbol in program.symbols}
    for node in walk(statement.value):
        if isinstance(node, Name) and node.name not in names:
            raise _Violation(f"{statement.target} reads the unknown name {node.name}")
    if statement.target not in names:
        raise _Violation(f"the target {statement.target} is no symbol")


def _single_assignment(program: Program) -> None:
    known = {s.name: s.guard for s in program.symbols if s.role is not Role.TEMPORARY}
    for statement in program.statements:
        for node in walk(statement.value):
            if isinstance(node, Name):
                _available(known, node.name, statement.guard, program.allowed)
        _define(known, statement)
    for result in program.results:
        _available(known, result.name, result.guard, program.allowed)


def _available(known: dict[str, Guard], name: str, guard: Guard, allowed: Guard | None) -> None:
    needed = guard if allowed is None else guard & allowed
    if name not in known or not needed.implies(known[name]):
        raise _Violation(f"{name} is read where it may not be defined ({guard.text()})")


def _define(known: dict[str, Guard], statement: Assign) -> None:
    before = known.get(statement.target)
    if before is not None and not (before & statement.guard).is_never:
        raise _Violation(f"{statement.target} is defined twice")
    known[statement.target] = statement.guard if before is None else before | statement.guard
