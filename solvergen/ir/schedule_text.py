"""The scheduled form as text: what the host computes, and what each pass reads, does and writes."""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.ir.guards import Guard
from solvergen.ir.program import Assign, Result
from solvergen.ir.schedule import Reduction, Schedule
from solvergen.ir.text import expression_text


def schedule_text(schedule: Schedule) -> str:
    """``schedule`` for people, the same text whenever it is the same. Ends with a newline."""
    lines = [
        f"{schedule.name}, scheduled",
        "",
        *([f"tensors are read as {schedule.view}", ""] if schedule.view else []),
        "host, in float64, once for each set of scalar values",
    ]
    lines += _statements(schedule.host)
    lines += [f"  keep {_result(result)}" for result in schedule.scalar_results]
    lines += ["", "table of scalars, each rounded once"]
    lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.table)] or ["  empty"]
    if schedule.is_staged:
        lines += ["", "table in float64, for the stages"]
        lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.wide)] or ["  empty"]
        lines += ["", "values that stages hand on, for each tensor; passes round each once"]
        lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.values)] or ["  empty"]
    for rank, columns in schedule.line_values.items() if schedule.view else ():
        lines += ["", f"values of {rank.value} that stages hand on; passes round each once"]
        lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(columns)] or ["  empty"]
    stages = {stage.number: stage for stage in schedule.stages}
    for number in range(len(schedule.passes) + 1):
        if number in stages:
            stage = stages[number]
            place = f"stage {number}, {_place(number, len(schedule.passes))}"
            if stage.body or stage.results:
                lines += ["", f"{place}, in float64 for each tensor"]
                lines += _statements(stage.body)
                lines += [f"  keep  {_result(result)}" for result in stage.results]
            for own in stage.lines:
                lines += ["", f"{place}, in float64 for all {own.rank.value}"]
                lines += _statements(own.body)
                lines += [f"  keep  {_result(result)}" for result in own.results]
        for _ in range(schedule.evaluations.count(number)):
            lines += ["", f"the gradient is evaluated anew, before pass {number + 1}"]
        if number < len(schedule.passes):
            lines += _pass_lines(schedule, number)
    return "\n".join(lines) + "\n"


def _statements(statements: Iterable[Assign]) -> list[str]:
    return [f"  {s.target} = {expression_text(s.value)}{_when(s.guard)}" for s in statements]


def _result(result: Result) -> str:
    return f"{result.buffer} = {result.name}{_when(result.guard)}"


def _when(guard: Guard) -> str:
    return "" if guard.is_always else f"  when {guard.text()}"


def _pass_lines(schedule: Schedule, number: int) -> list[str]:
    sweep = schedule.passes[number]
    walk = f", {_WALKS[sweep.walk]}" if schedule.view else ""
    lines = ["", f"pass {number + 1} of {len(schedule.passes)}{walk} ({sweep.reason})"]
    lines += [f"  load  {load.buffer}{_when(load.guard)}" for load in sweep.loads]
    lines += _statements(sweep.body)
    lines += [f"  store {_result(store)}" for store in sweep.stores]
    for r in sweep.reductions:
        lines.append(f"  reduce {_reduction(r)}")
    lines += [f"  then reduce {_reduction(r)}, of {r.source.value}" for r in sweep.of_lines]
    return lines


_WALKS = {"flat": "by chunks", "tiles": "by tiles", "none": "of no elements"}


def _reduction(r: Reduction) -> str:
    over = ["all"] if r.over_all else [r.along.value] if r.along.is_line else []
    args = ", ".join([*(arg.name for arg in r.args), *over])
    return f"{r.name} = {r.kind}({args}){_when(r.guard)}"


def _place(number: int, passes: int) -> str:
    if number == 0:
        return "before the first pass"
    return "after the last pass" if number == passes else f"after pass {number}"
