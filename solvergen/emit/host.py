"""The host program: ``scalars.py``, what is computed in float64 once a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solvergen.emit.body import guarded_lines
from solvergen.emit.identifiers import aliases
from solvergen.emit.imports import import_blocks, import_line
from solvergen.emit.number import python_number
from solvergen.emit.prose import signature, string, tuple_text
from solvergen.emit.python_printer import OF_THE_LIBRARY, PythonPrinter
from solvergen.emit.reference import HELPERS
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Logic, Number, Unary
from solvergen.ir.program import Role
from solvergen.ir.schedule import Column, Schedule
from solvergen.spec.model import COPY_OF_PARAM

LOCALS = ("names", "row", "wide", "state")
"""Variables of the functions' own, which step aside for names of the spec."""

INITIAL = "Initial"
"""The runtime's type of an initial value."""


@dataclass(frozen=True, slots=True)
class FunctionContext:
    """One function of ``scalars.py``: the lines of its head, what it does, the lines of its body."""

    signature: tuple[str, ...]
    doc: str
    body: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostContext:
    """All that ``package/scalars.py.j2`` places."""

    name: str
    source: str
    template: str
    imports: tuple[str, ...]
    functions: tuple[FunctionContext, ...]


def host_text(unit: Unit) -> str:
    """``scalars.py`` of ``unit``."""
    template = "package/scalars.py.j2"
    taken = {s.name for s in unit.optimised.symbols} | {a.target for a in unit.schedule.host}
    other = aliases((*HELPERS, *OF_THE_LIBRARY.values(), INITIAL, *LOCALS), taken)
    printer = PythonPrinter(other, floats=True)
    hyperparameters = [f"{s.name}: float" for s in unit.typed.with_role(Role.HYPERPARAMETER)]
    options = [f"{name}: bool" for name in unit.typed.options]
    functions = (
        _options_of(unit, hyperparameters, printer),
        _constraints(unit, hyperparameters + options, printer),
        _active_state(unit, options, other),
        *_accesses(unit, options, other),
        *(_activity(unit, options, other) if unit.schedule.is_staged else ()),
        _initial_state(unit, hyperparameters + options, printer, other[INITIAL]),
        _scalars(unit, hyperparameters + options, printer, other),
    )
    imports = import_blocks(
        (
            import_line("solvergen.runtime.definition", (INITIAL,), other),
            import_line("solvergen.runtime.scalars", printer.helpers, other),
        ),
        (import_line(f"{unit.package}_functions", printer.functions, other),),
    )
    context = HostContext(unit.spec.name, unit.source, template, imports, functions)
    return render(template, host=context)


def _keywords(parameters: list[str]) -> list[str]:
    return ["*", *parameters] if parameters else []


def _options_of(unit: Unit, parameters: list[str], printer: PythonPrinter) -> FunctionContext:
    derived = unit.surroundings.derived_options
    body = "return {" + ", ".join(f'"{name}": {printer.text(e)}' for name, e in derived) + "}"
    return FunctionContext(
        tuple(signature("options_of", _keywords(parameters), "dict[str, bool]")),
        "The options that follow from the hyperparameters.",
        (f"    {body}",),
    )


def _constraints(unit: Unit, parameters: list[str], printer: PythonPrinter) -> FunctionContext:
    body = []
    for constraint in unit.surroundings.constraints:
        type_ = constraint.that.type
        broken = _opposite(constraint.that)
        if constraint.when is not None:
            broken = Logic("and", constraint.when, broken, type=type_)
        body.append(f"    if {printer.text(broken)}:")
        body.append(f"        return {string(constraint.message)}")
    body.append("    return None")
    return FunctionContext(
        tuple(signature("constraints", _keywords(parameters), "str | None")),
        "What is wrong with this choice; None if nothing is.",
        tuple(body),
    )


def _opposite(condition: Expression) -> Expression:
    if isinstance(condition, Unary) and condition.op == "not":
        return condition.operand
    return Unary("not", condition, type=condition.type)


def _active_state(unit: Unit, options: list[str], local: Mapping[str, str]) -> FunctionContext:
    states = [unit.typed.symbol(s.name) for s in unit.spec.state]
    return _names_under_options(
        "active_state",
        "Names of the states that exist under these options.",
        [(s.name, s.guard) for s in states],
        options,
        local["names"],
    )


def _accesses(unit: Unit, options: list[str], local: Mapping[str, str]) -> tuple[FunctionContext, ...]:
    """Which buffers the passes read and write, so that speed can be held against what must be moved."""
    sweeps = unit.schedule.passes
    return (
        _names_under_options(
            "buffers_read",
            "Names of the buffers that a pass over the elements reads, once for each pass that does.",
            [(load.buffer, load.guard) for sweep in sweeps for load in sweep.loads],
            options,
            local["names"],
        ),
        _names_under_options(
            "buffers_written",
            "Names of the buffers that a pass over the elements writes, once for each pass that does.",
            [(store.buffer, store.guard) for sweep in sweeps for store in sweep.stores],
            options,
            local["names"],
        ),
    )


def _names_under_options(
    function: str, doc: str, guarded: list[tuple[str, Guard]], options: list[str], names: str
) -> FunctionContext:
    """A function of the options that returns the names whose guards hold."""
    quoted = [(string(name), guard) for name, guard in guarded]
    return _literals_under_options(function, doc, "str", quoted, options, names)


def _literals_under_options(
    function: str, doc: str, kind: str, guarded: list[tuple[str, Guard]], options: list[str], names: str
) -> FunctionContext:
    """A function of the options that returns the literals whose guards hold."""
    if all(guard.is_always for _, guard in guarded):
        body = [f"    return {tuple_text(literal for literal, _ in guarded)}"]
    else:
        pairs = [(guard, f"{names}.append({literal})") for literal, guard in guarded]
        body = [
            f"    {names}: list[{kind}] = []",
            *guarded_lines(pairs, lambda g: g.text(), "    "),
            f"    return (*{names},)",
        ]
    return FunctionContext(
        tuple(signature(function, _keywords(options), f"tuple[{kind}, ...]")), doc, tuple(body)
    )


def _activity(unit: Unit, options: list[str], local: Mapping[str, str]) -> tuple[FunctionContext, ...]:
    """Which passes and stages have anything to do."""
    schedule = unit.schedule
    passes = [(str(i), sweep.activity(schedule.options)) for i, sweep in enumerate(schedule.passes)]
    stages = [(str(stage.number), stage.any_activity(schedule.options)) for stage in schedule.stages]
    kept = [
        (str(i), store.guard)
        for i, sweep in enumerate(schedule.passes)
        for store in sweep.stores
        if store.buffer in schedule.carried[:1]
    ]
    keeping = _literals_under_options(
        "keeping_pass",
        "Number of the pass that keeps the parameters as they were, as a tuple of one.",
        "int",
        _possible(kept, schedule.allowed),
        options,
        local["names"],
    )
    return (
        *([keeping] if kept else []),
        _literals_under_options(
            "active_passes",
            "Numbers of the passes over the elements that have anything to do under these options.",
            "int",
            _possible(passes, schedule.allowed),
            options,
            local["names"],
        ),
        _literals_under_options(
            "active_stages",
            "Numbers of the stages of scalar work that have anything to do under these options.",
            "int",
            _possible(stages, schedule.allowed),
            options,
            local["names"],
        ),
    )


def _possible(guarded: list[tuple[str, Guard]], allowed: Guard | None) -> list[tuple[str, Guard]]:
    """Without what no setting has that the spec allows."""
    return [(literal, g) for literal, g in guarded if not (g if allowed is None else g & allowed).is_never]


def _initial_state(
    unit: Unit, parameters: list[str], printer: PythonPrinter, initial: str
) -> FunctionContext:
    items = []
    for name, expression in unit.surroundings.initial:
        items.append(f'"{name}": {_start(expression, printer)}')
    return FunctionContext(
        tuple(signature("initial_state", _keywords(parameters), f"dict[str, {initial}]")),
        'Where each state starts; "param" stands for a copy of the parameter.',
        (f"    return {{{', '.join(items)}}}",),
    )


def _start(expression: Expression | None, printer: PythonPrinter) -> str:
    if expression is None:
        return string(COPY_OF_PARAM)
    if isinstance(expression, Number):
        return python_number(expression, as_float=True)
    return printer.text(expression)


def _scalars(
    unit: Unit, parameters: list[str], printer: PythonPrinter, local: Mapping[str, str]
) -> FunctionContext:
    row, state = local["row"], local["state"]
    schedule = unit.schedule
    states = [s for s in unit.typed.with_role(Role.SCALAR_STATE) if s.name not in schedule.device_states]
    parameters = [*parameters, "t: float"]
    parameters += [f"{s.name}: float{'' if s.guard.is_always else ' = 0.0'}" for s in states]
    pairs: list[tuple[Guard, str]] = [
        (s.guard, f"{s.target} = {printer.text(s.value)}") for s in schedule.host
    ]
    body = guarded_lines(pairs, lambda guard: guard.text(), "    ")
    body += _row_lines(row, schedule, schedule.table)
    rows = [row]
    if schedule.is_staged:
        body += _row_lines(local["wide"], schedule, schedule.wide)
        rows.append(local["wide"])
    returned = ", ".join(rows)
    if all(r.guard.is_always for r in schedule.scalar_results):
        new = ", ".join(f'"{r.buffer}": {r.name}' for r in schedule.scalar_results)
        body.append(f"    return {returned}, {{{new}}}")
    else:
        body.append(f"    {state}: dict[str, float] = {{}}")
        results = [(r.guard, f'{state}["{r.buffer}"] = {r.name}') for r in schedule.scalar_results]
        body += guarded_lines(results, lambda guard: guard.text(), "    ")
        body.append(f"    return {returned}, {state}")
    numbers = ", ".join(["tuple[float, ...]"] * len(rows))
    doc = "A row of the kernels' table of scalars, and the new scalar state."
    if schedule.is_staged:
        doc = "A row of the passes' table, one of the stages', and the host's new scalar state."
    return FunctionContext(
        tuple(signature("scalars", _keywords(parameters), f"tuple[{numbers}, dict[str, float]]")),
        doc,
        tuple(body),
    )


def _row_lines(row: str, schedule: Schedule, table: Sequence[Column]) -> list[str]:
    """The assignment of a row of ``table`` to the variable ``row``."""
    where_defined: dict[str, Guard] = {}
    for statement in schedule.host:
        before = where_defined.get(statement.target, Guard.never(schedule.options))
        where_defined[statement.target] = before | statement.guard
    columns = []
    for column in table:
        defined = where_defined.get(column.name)
        always = defined is None or defined.is_always
        columns.append(
            column.name if always or defined is None else f"{column.name} if {defined.text()} else 0.0"
        )
    values = tuple_text(columns)
    if len(values) > 96:
        return [f"    {row} = (", *(f"        {column}," for column in columns), "    )"]
    return [f"    {row} = {values}"]
