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
    Reduce,
    Round,
    Stored,
    Unary,
    walk,
)
from solvergen.ir.program import Assign, Level, Program, Role
from solvergen.ir.schedule import LineStage, Pass, Schedule, Stage
from solvergen.ir.types import Kind, Rank, highest, holds


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
    """The scheduled form: names defined before use in each section, one load and store a buffer and pass."""
    try:
        host = dict(schedule.given)
        for statement in schedule.host:
            for node in walk(statement.value):
                if isinstance(node, (Round, Stored)) or (node.type is not None and node.type.is_element):
                    raise _Violation(f"element arithmetic on the host: {statement.target}")
                if isinstance(node, Name):
                    _available(host, node.name, statement.guard, schedule.allowed)
            _define(host, statement)
        for table in (schedule.table, schedule.wide):
            columns = [column.name for column in table]
            if len(set(columns)) != len(columns):
                raise _Violation("a column of the table occurs twice")
            for column in table:
                _available(host, column.name, column.guard, schedule.allowed)
        for result in schedule.scalar_results:
            _available(host, result.name, result.guard, schedule.allowed)
        _verify_device(schedule)
    except _Violation as violation:
        raise CompilerBug(f"{schedule.name}: after scheduling: {violation}") from None
    return schedule


def _verify_device(schedule: Schedule) -> None:
    """Stages and passes in turn: each reads what is there by then."""
    stages = {stage.number: stage for stage in schedule.stages}
    handed = {c.name: c.guard for c in schedule.values}
    handed |= {c.name: c.guard for columns in schedule.line_values.values() for c in columns}
    computed: dict[str, Guard] = {}
    complete: dict[str, Guard] = {}
    overwritten: dict[str, Guard] = {}
    for number in range(len(schedule.passes) + 1):
        if number in stages:
            stage = stages[number]
            _verify_stage(schedule, stage, handed, computed, complete)
            for lines in stage.lines:
                _verify_stage(schedule, lines, handed, computed, complete)
        if number < len(schedule.passes):
            sweep = schedule.passes[number]
            columns = {c.name: c.guard for c in schedule.table}
            columns |= {name: guard & computed[name] for name, guard in handed.items() if name in computed}
            _verify_pass(schedule, sweep, columns, overwritten)
            _verify_lines(schedule, sweep, columns)
            for reduction in (*sweep.reductions, *sweep.of_lines):
                before = complete.get(reduction.name, Guard.never(schedule.options))
                complete[reduction.name] = before | reduction.guard
            for store in sweep.stores:
                before = overwritten.get(store.buffer, Guard.never(schedule.options))
                overwritten[store.buffer] = before | store.guard
    if not {r.buffer for s in schedule.passes for r in s.stores} <= set(schedule.buffers):
        raise _Violation("a pass stores what is no buffer")


def _verify_stage(
    schedule: Schedule,
    stage: Stage | LineStage,
    handed: dict[str, Guard],
    computed: dict[str, Guard],
    complete: dict[str, Guard],
) -> None:
    always = Guard.always(schedule.options)
    known = {c.name: c.guard for c in schedule.wide} | dict.fromkeys(schedule.options, always)
    own = (*schedule.device_states, *schedule.shared_states)
    if isinstance(stage, LineStage):
        own = schedule.line_states[stage.rank]
    known |= dict.fromkeys(own, always)
    known |= {name: guard & computed[name] for name, guard in handed.items() if name in computed}
    for statement in stage.body:
        if isinstance(statement.value, Reduce):
            _available(complete, statement.target, statement.guard, schedule.allowed)
        else:
            for node in walk(statement.value):
                if isinstance(node, (Round, Stored, Reduce)) or (node.type and node.type.is_element):
                    raise _Violation(f"element arithmetic in a stage: {statement.target}")
                if isinstance(node, Name):
                    _available(known, node.name, statement.guard, schedule.allowed)
        _define(known, statement)
        before = computed.get(statement.target, Guard.never(schedule.options))
        computed[statement.target] = before | statement.guard
    for result in stage.results:
        if result.buffer not in own:
            raise _Violation(f"a stage writes {result.buffer}")
        _available(known, result.name, result.guard, schedule.allowed)


def _verify_lines(schedule: Schedule, sweep: Pass, columns: dict[str, Guard]) -> None:
    to_tensors = any(not r.along.is_line for r in sweep.reductions)
    if to_tensors and sweep.walk == "tiles":
        raise _Violation("one pass reduces to tensors and to lines")
    for reduction in sweep.of_lines:
        of = {column.name for column in schedule.line_values[reduction.source]}
        for arg in reduction.args:
            if arg.name not in of:
                raise _Violation(f"{reduction.name} is of {arg.name}, which no stage hands on")
            _available(columns, arg.name, reduction.guard, schedule.allowed)


def _verify_pass(
    schedule: Schedule, sweep: Pass, columns: dict[str, Guard], overwritten: dict[str, Guard]
) -> None:
    loaded = [load.buffer for load in sweep.loads]
    stored = [store.buffer for store in sweep.stores]
    if len(set(loaded)) != len(loaded) or len(set(stored)) != len(stored):
        raise _Violation("a buffer is read or written twice in one pass")
    if not schedule.evaluations and any(
        not (store.guard & overwritten[store.buffer]).is_never
        for store in sweep.stores
        if store.buffer in overwritten
    ):
        raise _Violation("a buffer is written in two passes")
    known = {load.buffer: load.guard for load in sweep.loads} | columns
    for statement in sweep.body:
        for node in walk(statement.value):
            if isinstance(node, Reduce):
                raise _Violation(f"a reduction inside a pass: {statement.target}")
            if isinstance(node, Name) and node.name not in schedule.options:
                _available(known, node.name, statement.guard, schedule.allowed)
        _define(known, statement)
    for store in sweep.stores:
        _available(known, store.name, store.guard, schedule.allowed)
    for reduction in sweep.reductions:
        for arg in reduction.args:
            _available(known, arg.name, reduction.guard, schedule.allowed)


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
    elif isinstance(node, Reduce):
        ranks = {o.type.rank for o in node.operands if o.type}
        if len(ranks) != 1 or (
            node.type.rank.value != node.along if node.along else node.type.rank is not Rank.SCALAR
        ):
            raise _Violation(f"a reduction of what it can't reduce: {node}")
        if node.type.rank in ranks or Rank.SCALAR in ranks:
            raise _Violation(f"a reduction takes elements to lines or a scalar: {node}")
    elif node.operands and not isinstance(node, (Name, Number)):
        _ranks(node)


def _ranks(node: Expression) -> None:
    assert node.type is not None
    operands = node.operands
    if isinstance(node, Call) and node.function == "ipow" and isinstance(operands[1], Number):
        operands = operands[:1]  # the exponent says how often to multiply; it never meets the element
    ranks = {operand.type.rank for operand in operands if operand.type and not operand.type.is_bool}
    if len(ranks) > 1 and node.type.is_element:
        raise _Violation(f"a scalar meets an element without being rounded: {node}")
    if not holds(node.type.rank, highest(ranks)):
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
