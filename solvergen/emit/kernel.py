"""The context of the kernels' templates; ``kernel.c`` and ``kernel.cu`` have the same one."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence, Sized
from dataclasses import dataclass

from solvergen.emit.body import OPTION_MACRO, body_lines, macro_condition
from solvergen.emit.c_printer import CPrinter
from solvergen.emit.identifiers import c_identifiers
from solvergen.emit.render import render
from solvergen.emit.stage import StageContext, stage_contexts
from solvergen.emit.terms import (
    ReductionContext,
    TermContext,
    formed_terms,
    reduction_contexts,
    sharing_terms,
)
from solvergen.emit.unit import Unit
from solvergen.ir.nodes import names_in
from solvergen.ir.program import Role
from solvergen.ir.schedule import Column, Pass
from solvergen.ir.types import Rank

BODY_INDENT = " " * 8
_ROWS_TOGETHER = {1: 4, 2: 2}
"""Rows that add to columns together, by how many buffers are read: few streams are fetched ahead."""

_TYPES = {Role.PARAM: "sg_param", Role.GRAD: "sg_grad", Role.STATE: "sg_state"}
_COPIES = {"bfloat16": "sg_bf16", "float16": "sg_f16"}
"""The types of copies of the parameter in another storage type."""


@dataclass(frozen=True, slots=True)
class ScalarContext:
    """A scalar read from a table before the loop."""

    name: str
    index: int
    guard: str | None


@dataclass(frozen=True, slots=True)
class BufferContext:
    """A buffer: where it lies in the pointer table, what is read from and written to it, and when."""

    name: str
    index: int
    type: str
    guard: str | None
    pointer: str
    value: str
    loaded: bool
    load_guard: str | None
    stored: bool
    store_guard: str | None
    result: str


@dataclass(frozen=True, slots=True)
class PassContext:
    """One sweep over the elements.

    ``suffix`` ends the names of its functions: empty for the only pass of an elementwise rule, ``_0``
    and so on for those of others. ``values`` are read from what stages have computed. ``first`` is the
    buffer whose place in a cache line decides how rows are cut. Of rules that know lines: ``walk``, by chunks
    ("flat") or by "tiles", and the values of lines that it reads and forms. ``by_tiles``: targets that
    keep values of columns near do better to walk by tiles, and may. ``rows_together``: how many rows of a
    tile they do well to read side by side. ``row_first``: where the totals of its reductions of rows begin
    in the table of these. ``rows_of_matrices``: tensors of fewer than two axes have no use for them.
    """

    number: int
    suffix: str
    reason: str
    guard: str | None
    scalars: tuple[ScalarContext, ...]
    values: tuple[ScalarContext, ...]
    buffers: tuple[BufferContext, ...]
    first: BufferContext
    body: tuple[str, ...]
    reductions: tuple[ReductionContext, ...]
    walk: str
    row_values: tuple[ScalarContext, ...]
    column_values: tuple[ScalarContext, ...]
    matrix_values: tuple[ScalarContext, ...]
    row_reductions: tuple[ReductionContext, ...]
    column_reductions: tuple[ReductionContext, ...]
    by_tiles: bool
    rows_together: int
    row_first: int
    rows_of_matrices: bool

    @property
    def line_values(self) -> tuple[ScalarContext, ...]:
        """All that it reads of lines."""
        return self.row_values + self.column_values + self.matrix_values

    @property
    def forms_lines(self) -> bool:
        """Whether it walks by tiles because it reduces along rows or columns."""
        return self.walk == "tiles"

    @property
    def terms(self) -> tuple[TermContext, ...]:
        """What a pass over tiles forms of each element."""
        return formed_terms(self.row_reductions, self.column_reductions)

    @property
    def row_steps(self) -> tuple[int, ...]:
        """Of how many whole rows of a tile there is a loop each."""
        return (1,) if self.rows_together == 1 else (1, self.rows_together)


@dataclass(frozen=True, slots=True)
class KernelContext:
    """All that a kernel's template places.

    ``staged``: there are several passes, or reductions, or stages. The numbers are the widths of tables.
    ``writes_grad``: a pass stores into the gradient. ``copies``: the buffers that are copies of the parameter
    in another storage type.
    """

    preamble: str
    functions: tuple[str, ...]
    passes: tuple[PassContext, ...]
    stages: tuple[StageContext, ...]
    staged: bool
    n_buffers: int
    n_scalars: int
    n_wide: int
    n_values: int
    n_reductions: int
    n_states: int
    n_shared: int
    writes_grad: bool
    copies: tuple[BufferContext, ...]
    has_lines: bool
    n_row_totals: int
    n_row_values: int
    n_row_states: int
    n_column_totals: int
    n_column_values: int
    n_column_states: int
    n_matrix_totals: int
    n_matrix_values: int
    n_matrix_states: int


Library = Callable[[tuple[str, ...], tuple[str, ...]], tuple[str, ...]]
"""Prints library functions (of elements, and of stages), and those that they call, as lines of C."""


def kernel_text(unit: Unit, template: str, library: Library) -> str:
    """The kernel of ``unit`` in ``template`` (``cpu/kernel.c.j2`` or ``cuda/kernel.cu.j2``)."""
    return render(template, kernel=kernel_context(unit, template, library))


def kernel_context(unit: Unit, template: str, library: Library) -> KernelContext:
    """What ``template`` needs to print the passes and stages of ``unit``."""
    schedule = unit.schedule
    names = dict(c_identifiers(_names(unit)))
    names.update({option: OPTION_MACRO.format(option) for option in schedule.options})
    roles = {s.name: s.role for s in unit.optimised.symbols}
    elements = CPrinter(names, roles)
    passes = tuple(
        _pass_context(unit, number, sweep, elements)
        for number, sweep in enumerate(schedule.passes)
        if sweep.walk != "none"
    )
    scalars = CPrinter(names, real="double", stage=True)
    stages = stage_contexts(schedule, scalars, unit.source)
    preamble = (
        f"/* The update of {unit.spec.name}.\n"
        f"   Generated by solvergen from {unit.source} and templates/{template}:\n"
        "   edit those instead. */"
    )
    return KernelContext(
        preamble=preamble,
        functions=library(tuple(elements.functions), tuple(scalars.functions)),
        passes=passes,
        stages=stages,
        staged=schedule.is_staged,
        n_buffers=len(schedule.buffers),
        n_scalars=max(1, len(schedule.table)),
        n_wide=max(1, len(schedule.wide)),
        n_values=max(1, len(schedule.values)),
        n_reductions=max(1, len(schedule.reductions)),
        n_states=max(1, len(schedule.device_states)),
        n_shared=max(1, len(schedule.shared_states)),
        writes_grad=any(b.stored and b.type == "sg_grad" for sweep in passes for b in sweep.buffers),
        copies=tuple(b for b in passes[0].buffers if b.type in _COPIES.values()) if passes else (),
        has_lines=bool(schedule.view),
        n_row_totals=max(1, len(schedule.totals(Rank.ROWS))),
        n_row_values=_width(schedule.line_values, Rank.ROWS),
        n_row_states=_width(schedule.line_states, Rank.ROWS),
        n_column_totals=max(1, len(schedule.totals(Rank.COLUMNS))),
        n_column_values=_width(schedule.line_values, Rank.COLUMNS),
        n_column_states=_width(schedule.line_states, Rank.COLUMNS),
        n_matrix_totals=max(1, len(schedule.totals(Rank.MATRICES))),
        n_matrix_values=_width(schedule.line_values, Rank.MATRICES),
        n_matrix_states=_width(schedule.line_states, Rank.MATRICES),
    )


def _width(tables: Mapping[Rank, Sized], rank: Rank) -> int:
    return max(1, len(tables[rank]))


def _pass_context(unit: Unit, number: int, sweep: Pass, printer: CPrinter) -> PassContext:
    schedule = unit.schedule
    names = printer.names
    symbols = {s.name: s for s in unit.optimised.symbols}
    copies = {s.name: _COPIES[s.dtype] for s in unit.spec.state if s.dtype}
    body = body_lines(sweep.body, printer, BODY_INDENT, unit.source)
    read = {name for statement in sweep.body for name in names_in(statement.value)}
    loads = {load.buffer: load for load in sweep.loads}
    stores = {store.buffer: store for store in sweep.stores}
    buffers = []
    for index, buffer in enumerate(schedule.buffers):
        load, store = loads.get(buffer), stores.get(buffer)
        buffers.append(
            BufferContext(
                name=names[buffer],
                index=index,
                type=copies.get(buffer)
                or ("sg_state" if buffer in schedule.carried else _TYPES[symbols[buffer].role]),
                guard=None if buffer in schedule.carried else macro_condition(symbols[buffer].guard),
                pointer=f"sg_{buffer}_at",
                value=names[buffer],
                loaded=load is not None,
                load_guard=macro_condition(load.guard) if load else None,
                stored=store is not None,
                store_guard=macro_condition(store.guard) if store else None,
                result=names[store.name] if store else "",
            )
        )
    along = {
        rank: tuple(r for r in sweep.reductions if r.along is rank)
        for rank in (Rank.SCALAR, Rank.ROWS, Rank.COLUMNS)
    }
    row_reductions = reduction_contexts(along[Rank.ROWS], names)
    column_reductions = sharing_terms(reduction_contexts(along[Rank.COLUMNS], names), row_reductions)
    column_values = _read(schedule.line_values.get(Rank.COLUMNS, ()), names, read)
    return PassContext(
        number=number,
        suffix=f"_{number}" if schedule.is_staged else "",
        reason=sweep.reason,
        guard=macro_condition(sweep.activity(schedule.options)),
        scalars=_read(schedule.table, names, read),
        values=_read(schedule.values, names, read),
        buffers=tuple(buffers),
        first=_first(buffers),
        body=tuple(body),
        reductions=reduction_contexts(along[Rank.SCALAR], names),
        walk=sweep.walk,
        row_values=_read(schedule.line_values.get(Rank.ROWS, ()), names, read),
        column_values=column_values,
        matrix_values=_read(schedule.line_values.get(Rank.MATRICES, ()), names, read),
        row_reductions=row_reductions,
        column_reductions=column_reductions,
        by_tiles=sweep.walk == "tiles" or (bool(column_values) and not along[Rank.SCALAR]),
        rows_together=_ROWS_TOGETHER.get(len(loads), 1) if column_reductions else 1,
        row_first=schedule.totals(Rank.ROWS).index(along[Rank.ROWS][0]) if along[Rank.ROWS] else 0,
        rows_of_matrices=schedule.of_matrices.issuperset(r.name for r in along[Rank.ROWS]),
    )


def _read(
    table: Sequence[Column], names: Mapping[str, str], read: Container[str]
) -> tuple[ScalarContext, ...]:
    """Those of a table's columns that are read."""
    return tuple(
        ScalarContext(names[column.name], index, macro_condition(column.guard))
        for index, column in enumerate(table)
        if column.name in read
    )


def _first(buffers: Sequence[BufferContext]) -> BufferContext:
    """The first that is there under all options and that the pass works on, if there is one."""
    used = [b for b in buffers if b.loaded or b.stored]
    return next((b for b in used if b.guard is None), buffers[0])


def _names(unit: Unit) -> tuple[str, ...]:
    """Every name that the kernel's text holds, in a fixed order."""
    schedule = unit.schedule
    body = [statement.target for sweep in schedule.passes for statement in sweep.body]
    for stage in schedule.stages:
        body += [statement.target for statement in stage.body]
        body += [statement.target for own in stage.lines for statement in own.body]
    of_lines = schedule.line_values.values()
    tables = (c.name for table in (schedule.table, schedule.wide, schedule.values, *of_lines) for c in table)
    numbers = [*schedule.device_states, *schedule.shared_states]
    numbers += [name for names in schedule.line_states.values() for name in names]
    return tuple(dict.fromkeys((*schedule.buffers, *tables, *numbers, *body)))
