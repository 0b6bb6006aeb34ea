"""The scheduled form as text: what the host computes, and what each pass reads, does and writes."""

from __future__ import annotations

from collections.abc import Iterable

from solvergen.ir.guards import Guard
from solvergen.ir.program import Assign, Result
from solvergen.ir.schedule import Schedule
from solvergen.ir.text import expression_text


def schedule_text(schedule: Schedule) -> str:
    """``schedule`` for people, the same text whenever it is the same. Ends with a newline."""
    lines = [f"{schedule.name}, scheduled", "", "host, in float64, once for each set of scalar values"]
    lines += _statements(schedule.host)
    lines += [f"  keep {_result(result)}" for result in schedule.scalar_results]
    lines += ["", "table of scalars, each rounded once"]
    lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.table)] or ["  empty"]
    if schedule.is_staged:
        lines += ["", "table in float64, for the stages"]
        lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.wide)] or ["  empty"]
        lines += ["", "values that stages hand on, for each tensor; passes round each once"]
        lines += [f"  {i}: {c.name}{_when(c.guard)}" for i, c in enumerate(schedule.values)] or ["  empty"]
    stages = {stage.number: stage for stage in schedule.stages}
    for number in range(len(schedule.passes) + 1):
        if number in stages:
            lines += [
                "",
                f"stage {number}, {_place(number, len(schedule.passes))}, in float64 for each tensor",
            ]
            lines += _statements(stages[number].body)
            lines += [f"  keep  {_result(result)}" for result in stages[number].results]
        if number in schedule.evaluations:
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
    lines = ["", f"pass {number + 1} of {len(schedule.passes)} ({sweep.reason})"]
    lines += [f"  load  {load.buffer}{_when(load.guard)}" for load in sweep.loads]
    lines += _statements(sweep.body)
    lines += [f"  store {_result(store)}" for store in sweep.stores]
    for r in sweep.reductions:
        args = ", ".join([*(arg.name for arg in r.args), *(["all"] if r.over_all else [])])
        lines.append(f"  reduce {r.name} = {r.kind}({args}){_when(r.guard)}")
    return lines


def _place(number: int, passes: int) -> str:
    if number == 0:
        return "before the first pass"
    return "after the last pass" if number == passes else f"after pass {number}"
