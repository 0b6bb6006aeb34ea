"""``schema.py``: what the runtime and the snapshots know of an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.emit.prose import string, tuple_text
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.schedule import Schedule
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
            f"State({string(s.name)}, shape={string(s.shape)}, doc={string(s.doc)})" for s in spec.state
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
    first = 0
    lines = [
        f"device_states={tuple_text(string(name) for name in schedule.device_states)},",
        f"wide={tuple_text(string(column.name) for column in schedule.wide)},",
        f"n_values={len(schedule.values)},",
        "passes=(",
    ]
    for sweep in schedule.passes:
        kinds = tuple_text(string(r.kind) for r in sweep.reductions)
        over = tuple_text(string("all" if r.over_all else "tensor") for r in sweep.reductions)
        lines.append(f"    Pass(first={first}, kinds={kinds}, over={over}),")
        first += len(sweep.reductions)
    return (
        *lines,
        "),",
        f"stages={tuple_text(str(stage.number) for stage in schedule.stages)},",
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
