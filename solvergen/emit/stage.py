"""Stages as C: scalar work in double, for each tensor, between the passes."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.emit.body import body_lines, macro_condition
from solvergen.emit.c_printer import CPrinter
from solvergen.emit.terms import finished
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Reduce, names_in
from solvergen.ir.schedule import Schedule, Stage

STAGE_INDENT = " " * 8


@dataclass(frozen=True, slots=True)
class InputContext:
    """A number read before the stage's equations: ``name`` is element ``index`` of ``table``."""

    name: str
    table: str
    index: int
    guard: str | None


@dataclass(frozen=True, slots=True)
class OutputContext:
    """A number kept after them. ``leader``: only of the first tensor that takes part."""

    table: str
    index: int
    name: str
    guard: str | None
    leader: bool


@dataclass(frozen=True, slots=True)
class StageContext:
    """One stage: what it reads, computes and keeps."""

    number: int
    guard: str | None
    inputs: tuple[InputContext, ...]
    body: tuple[str, ...]
    outputs: tuple[OutputContext, ...]


def stage_contexts(schedule: Schedule, printer: CPrinter, file: str) -> tuple[StageContext, ...]:
    """All stages of ``schedule``; ``file`` is the spec's name in comments."""
    return tuple(_stage_context(schedule, stage, printer, file) for stage in schedule.stages)


def _stage_context(schedule: Schedule, stage: Stage, printer: CPrinter, file: str) -> StageContext:
    names = printer.names
    totals = {(r.name, r.guard.table): (i, r) for i, r in enumerate(schedule.reductions)}
    statement_of = {id(s.value): s for s in stage.body}

    def text(e: Expression) -> str:
        if isinstance(e, Reduce):
            statement = statement_of[id(e)]
            column, reduction = totals[statement.target, statement.guard.table]
            return finished(reduction, column)
        return printer.text(e)

    own = {statement.target for statement in stage.body}
    never = Guard.never(schedule.options)
    read: dict[str, Guard] = {}
    for statement in stage.body:
        for name in () if isinstance(statement.value, Reduce) else names_in(statement.value):
            read[name] = read.get(name, never) | statement.guard
    for result in stage.results:
        read[result.name] = read.get(result.name, never) | result.guard
    tables = (
        ("sg_wide", [c.name for c in schedule.wide]),
        ("sg_values", [c.name for c in schedule.values]),
        ("sg_states", list(schedule.device_states)),
        ("sg_shared", list(schedule.shared_states)),
    )
    inputs = tuple(
        InputContext(names[name], table, index, macro_condition(read[name]))
        for table, columns in tables
        for index, name in enumerate(columns)
        if name in read and name not in own
    )
    outputs = []
    for index, column in enumerate(schedule.values):
        made = never
        for statement in stage.body:
            if statement.target == column.name:
                made = made | statement.guard
        if not made.is_never:
            outputs.append(
                OutputContext("sg_values", index, names[column.name], macro_condition(made), False)
            )
    for result in stage.results:
        is_shared = result.buffer in schedule.shared_states
        states = schedule.shared_states if is_shared else schedule.device_states
        outputs.append(
            OutputContext(
                "sg_shared_new" if is_shared else "sg_states",
                states.index(result.buffer),
                names[result.name],
                macro_condition(result.guard),
                is_shared,
            )
        )
    body = body_lines(stage.body, printer, STAGE_INDENT, file, text)
    return StageContext(
        stage.number,
        macro_condition(stage.activity(schedule.options)),
        inputs,
        tuple(body),
        tuple(outputs),
    )
