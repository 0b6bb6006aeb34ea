"""``schema.py``: what the runtime and the snapshots know of an optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvergen.emit.prose import string, tuple_text
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.schedule import Pass, Schedule
from solvergen.ir.types import Rank
from solvergen.spec.model import Hyperparameter


@dataclass(frozen=True, slots=True)
class SchemaContext:
    """All that ``snapshot/schema.py.j2`` places."""

    name: str
    class_name: str
    spec: str
    source: str
    template: str
    digest: str
    hyperparameters: tuple[str, ...]
    options: tuple[str, ...]
    state: tuple[str, ...]
    table: tuple[str, ...]
    staged: tuple[str, ...]
    imports: str


def schema_text(unit: Unit) -> str:
    """``schema.py`` of ``unit``."""
    template = "snapshot/schema.py.j2"
    spec = unit.spec
    used = [
        n
        for n, there in (
            ("Hyperparameter", spec.hyperparameters),
            ("Option", spec.options),
            ("State", spec.state),
            ("Pass", unit.schedule.is_staged),
            ("LineReduction", any(sweep.of_lines for sweep in unit.schedule.passes)),
        )
        if there
    ]
    context = SchemaContext(
        name=spec.name,
        class_name=spec.class_name,
        spec=string(unit.source),
        source=unit.source,
        template=template,
        digest=spec.digest,
        hyperparameters=tuple(_hyperparameter(h) for h in spec.hyperparameters),
        options=tuple(
            f"Option({string(o.name)}, default={None if o.is_derived else o.default}, doc={string(o.doc)})"
            for o in spec.options
        ),
        state=tuple(
            f"State({string(s.name)}, shape={string(s.shape)}, "
            + (f"dtype={string(s.dtype)}, " if s.dtype else "")
            + f"doc={string(s.doc)})"
            for s in spec.state
        ),
        table=tuple(string(column.name) for column in unit.schedule.table),
        staged=_staged(unit.schedule),
        imports=", ".join(sorted(["Definition", *used])),
    )
    return render(template, schema=context)


def _hyperparameter(h: Hyperparameter) -> str:
    parts = [string(h.name), f"default={h.default!r}"]
    parts += [
        f"{key}={value!r}"
        for key in ("min", "max", "above", "below")
        if (value := getattr(h, key)) is not None
    ]
    if h.integer:
        parts.append("integer=True")
    return f"Hyperparameter({', '.join(parts)}, doc={string(h.doc)})"


def _staged(schedule: Schedule) -> tuple[str, ...]:
    """Lines of what only rules of several passes or stages say."""
    if not schedule.is_staged:
        return ()
    numbers = [stage.number for stage in schedule.stages if stage.body or stage.results or not schedule.view]
    lines = [
        f"device_states={tuple_text(string(name) for name in schedule.device_states)},",
        f"wide={tuple_text(string(column.name) for column in schedule.wide)},",
        f"n_values={len(schedule.values)},",
        *_lines(schedule),
        "passes=(",
    ]
    first = dict.fromkeys((Rank.SCALAR, Rank.ROWS, Rank.COLUMNS), 0)
    for sweep in schedule.passes:
        lines += [f"    {line}" for line in _pass(schedule, sweep, first)]
        for reduction in sweep.reductions:
            first[reduction.along] += 1
    return (
        *lines,
        "),",
        f"stages={tuple_text(str(number) for number in numbers)},",
        f"yields={schedule.yields},",
        *_evaluating(schedule),
        "active_passes=scalars.active_passes,",
        "active_stages=scalars.active_stages,",
    )


def _evaluating(schedule: Schedule) -> tuple[str, ...]:
    if not schedule.evaluations:
        return ()
    return (
        f"evaluations={tuple_text(str(number) for number in schedule.evaluations)},",
        f"carried={tuple_text(string(name) for name in schedule.carried)},",
        "keeping_pass=scalars.keeping_pass,",
    )


def _lines(schedule: Schedule) -> tuple[str, ...]:
    """What rules that know lines say of them."""
    if not schedule.view:
        return ()
    stages = [
        f"({stage.number}, {string(own.rank.value)})" for stage in schedule.stages for own in stage.lines
    ]
    return (
        f"view={string(schedule.view)},",
        f"line_stages={tuple_text(stages)},",
        f"n_row_values={len(schedule.line_values[Rank.ROWS])},",
        f"n_column_values={len(schedule.line_values[Rank.COLUMNS])},",
        f"n_matrix_values={len(schedule.line_values[Rank.MATRICES])},",
    )


def _pass(schedule: Schedule, sweep: Pass, first: Mapping[Rank, int]) -> list[str]:
    """The entry of a pass, whose reductions begin at these columns of the tables of totals."""
    of = {rank: [r for r in sweep.reductions if r.along is rank] for rank in first}

    def kinds(rank: Rank) -> str:
        return tuple_text(string(r.kind) for r in of[rank])

    over = tuple_text(string("all" if r.over_all else "tensor") for r in of[Rank.SCALAR])
    whole = f"first={first[Rank.SCALAR]}, kinds={kinds(Rank.SCALAR)}, over={over}"
    if not schedule.view:
        return [f"Pass({whole}),"]
    lines = [
        "Pass(",
        f"    {whole},",
        f"    walk={string(sweep.walk)},",
        f"    row_first={first[Rank.ROWS]}, row_kinds={kinds(Rank.ROWS)},",
        f"    column_first={first[Rank.COLUMNS]}, column_kinds={kinds(Rank.COLUMNS)},",
        "    line_reductions=(",
    ]
    for reduction in sweep.of_lines:
        (arg,) = reduction.args
        values = [column.name for column in schedule.line_values[reduction.source]]
        over = "matrices" if reduction.along.is_line else "tensor"
        lines.append(
            f"        LineReduction({string(reduction.source.value)}, {values.index(arg.name)}, "
            f"{string(reduction.kind)}, {string(over)}, {schedule.totals(reduction.along).index(reduction)}"
            + (", of_matrices=True" if reduction.name in schedule.of_matrices else "")
            + "),"
        )
    return [*lines, "    ),", "),"]
