"""Stages as C: scalar work in double, for each tensor, between the passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvergen.emit.body import body_lines, macro_condition
from solvergen.emit.c_printer import CPrinter
from solvergen.emit.terms import TOTALS, finished
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Reduce, names_in
from solvergen.ir.program import Assign, Result
from solvergen.ir.schedule import Schedule, Stage
from solvergen.ir.types import LINE_RANKS, Rank

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
class ColumnContext:
    """A column of a table of lines that a stage reads; ``kept``: that it writes, too, or only."""

    table: str
    index: int
    kept: bool


@dataclass(frozen=True, slots=True)
class LinesContext:
    """What a stage reads, computes and keeps for lines of ``rank``: "rows", "columns" or "matrices".

    ``line`` is what one of them is called. In a tensor's row of the table of geometries, column ``first`` has
    the number of its first line, ``per_matrix`` how many there are in a matrix (unless they are matrices).
    ``of_matrices``: tensors of fewer than two axes have no use for it.
    """

    rank: str
    line: str
    first: int
    per_matrix: int | None
    number: int
    guard: str | None
    of_matrices: bool
    inputs: tuple[InputContext, ...]
    body: tuple[str, ...]
    outputs: tuple[OutputContext, ...]

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of its own lines."""
        return tuple(f"sg_{self.line}_{what}" for what in ("totals", "values", "states"))

    @property
    def reads_matrices(self) -> bool:
        """Whether it reads values of the matrix that its lines are in."""
        return self.line != "matrix" and any(i.table == "sg_matrix_values" for i in self.inputs)

    @property
    def columns(self) -> tuple[ColumnContext, ...]:
        """The columns of these that it works on."""
        read = [(i.table, i.index) for i in self.inputs if i.table in self.tables]
        kept = [(o.table, o.index) for o in self.outputs]
        return tuple(ColumnContext(*column, column in kept) for column in dict.fromkeys((*read, *kept)))


@dataclass(frozen=True, slots=True)
class StageContext:
    """One stage: what it reads, computes and keeps for a tensor, and then for its lines."""

    number: int
    guard: str | None
    inputs: tuple[InputContext, ...]
    body: tuple[str, ...]
    outputs: tuple[OutputContext, ...]
    lines: tuple[LinesContext, ...]


def stage_contexts(schedule: Schedule, printer: CPrinter, file: str) -> tuple[StageContext, ...]:
    """All stages of ``schedule``; ``file`` is the spec's name in comments."""
    return tuple(_stage_context(schedule, stage, printer, file) for stage in schedule.stages)


_LINES = {Rank.MATRICES: "matrix", Rank.ROWS: "row", Rank.COLUMNS: "column"}
_GEOMETRY: dict[Rank, tuple[int, int | None]] = {
    Rank.MATRICES: (5, None),
    Rank.ROWS: (3, 1),
    Rank.COLUMNS: (4, 2),
}
"""Of ``LinesContext``: ``first`` and ``per_matrix``."""


def _stage_context(schedule: Schedule, stage: Stage, printer: CPrinter, file: str) -> StageContext:
    worker = _Worker(schedule, printer, file)
    lines = []
    for own in stage.lines:
        guard = macro_condition(own.activity(schedule.options))
        parts = worker.work(own.body, own.results, own.rank)
        first, per_matrix = _GEOMETRY[own.rank]
        of_matrices = not own.results and schedule.of_matrices.issuperset(s.target for s in own.body)
        lines.append(
            LinesContext(
                own.rank.value, _LINES[own.rank], first, per_matrix, stage.number, guard, of_matrices, *parts
            )
        )
    guard = macro_condition(stage.activity(schedule.options))
    parts = worker.work(stage.body, stage.results, Rank.SCALAR)
    return StageContext(stage.number, guard, *parts, tuple(lines))


_Parts = tuple[tuple[InputContext, ...], tuple[str, ...], tuple[OutputContext, ...]]


class _Worker:
    """Prints what a stage does, for tensors and for their lines alike."""

    def __init__(self, schedule: Schedule, printer: CPrinter, file: str) -> None:
        self._schedule = schedule
        self._printer = printer
        self._file = file
        ranks = (Rank.SCALAR, *LINE_RANKS)
        self._totals = {
            (r.name, r.guard.table): (column, r)
            for rank in ranks
            for column, r in enumerate(schedule.totals(rank))
        }

    def work(self, body: Sequence[Assign], results: Sequence[Result], rank: Rank) -> _Parts:
        """Inputs, lines and outputs of work for ``rank``."""
        statement_of = {id(s.value): s for s in body}

        def text(e: Expression) -> str:
            if isinstance(e, Reduce):
                statement = statement_of[id(e)]
                column, reduction = self._totals[statement.target, statement.guard.table]
                return finished(reduction, column)
            return self._printer.text(e)

        lines = body_lines(body, self._printer, STAGE_INDENT, self._file, text)
        inputs = self._line_totals(body) + self._inputs(body, results, rank)
        return inputs, tuple(lines), self._outputs(body, results, rank)

    def _line_totals(self, body: Sequence[Assign]) -> tuple[InputContext, ...]:
        """Those totals of lines that the body takes."""
        return tuple(
            InputContext(
                TOTALS[reduction.along].format(column),
                f"sg_{_LINES[reduction.along]}_totals",
                column,
                macro_condition(reduction.guard),
            )
            for column, reduction in (
                self._totals[s.target, s.guard.table] for s in body if isinstance(s.value, Reduce)
            )
            if reduction.along.is_line
        )

    def _inputs(
        self, body: Sequence[Assign], results: Sequence[Result], rank: Rank
    ) -> tuple[InputContext, ...]:
        schedule = self._schedule
        own = {statement.target for statement in body}
        never = Guard.never(schedule.options)
        read: dict[str, Guard] = {}
        for statement in body:
            for name in () if isinstance(statement.value, Reduce) else names_in(statement.value):
                read[name] = read.get(name, never) | statement.guard
        for result in results:
            read[result.name] = read.get(result.name, never) | result.guard
        tables = [
            ("sg_wide", [c.name for c in schedule.wide]),
            ("sg_values", [c.name for c in schedule.values]),
            ("sg_states", list(schedule.device_states)),
            ("sg_shared", list(schedule.shared_states)),
        ]
        for other, word in _LINES.items():
            if other in schedule.line_values and (rank is other or other is Rank.MATRICES):
                tables.append((f"sg_{word}_values", [c.name for c in schedule.line_values[other]]))
            if other in schedule.line_states and rank is other:
                tables.append((f"sg_{word}_states", list(schedule.line_states[other])))
        return tuple(
            InputContext(self._printer.names[name], table, index, macro_condition(read[name]))
            for table, columns in tables
            for index, name in enumerate(columns)
            if name in read and name not in own
        )

    def _outputs(
        self, body: Sequence[Assign], results: Sequence[Result], rank: Rank
    ) -> tuple[OutputContext, ...]:
        schedule, names = self._schedule, self._printer.names
        word = f"{_LINES[rank]}_" if rank.is_line else ""
        values = schedule.line_values[rank] if rank.is_line else schedule.values
        outputs = []
        for index, column in enumerate(values):
            made = Guard.never(schedule.options)
            for statement in body:
                if statement.target == column.name:
                    made = made | statement.guard
            if not made.is_never:
                guard = macro_condition(made)
                outputs.append(
                    OutputContext(f"sg_{word}values", index, names[column.name], guard, leader=False)
                )
        for result in results:
            is_shared = result.buffer in schedule.shared_states
            states = schedule.line_states[rank] if rank.is_line else schedule.device_states
            states = schedule.shared_states if is_shared else states
            outputs.append(
                OutputContext(
                    "sg_shared_new" if is_shared else f"sg_{word}states",
                    states.index(result.buffer),
                    names[result.name],
                    macro_condition(result.guard),
                    is_shared,
                )
            )
        return tuple(outputs)
