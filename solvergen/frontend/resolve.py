"""From a spec to a typed program: equations parsed, names resolved, types found, everything checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from solvergen.errors import Diagnostic, SpecError
from solvergen.frontend.conditions import read_guard
from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import Equation, read_equation, read_expression
from solvergen.frontend.scope import ASSIGNABLE, DESCRIPTIONS, Scope, scope_of
from solvergen.frontend.suggestions import instead_of_name
from solvergen.frontend.infer import Typer, join, rounded
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression, Name
from solvergen.ir.program import Assign, Level, Program, Role, Symbol
from solvergen.ir.types import Type

if TYPE_CHECKING:
    from solvergen.spec.model import Spec, Text


@dataclass(frozen=True)
class Analysis:
    """A spec seen through: its programs (None where errors forbid one) and everything found."""

    parsed: Program | None
    typed: Program | None
    diagnostics: tuple[Diagnostic, ...]


@dataclass(frozen=True)
class Line:
    """A statement of the spec that could be read."""

    text: Text
    equation: Equation
    guard: Guard


def build(spec: Spec) -> Program:
    """The program of ``spec`` as written (level PARSED). Raises SpecError with everything that is wrong."""
    return _or_raise(analyse(spec).parsed, spec)


def resolve(program: Program, spec: Spec) -> Program:
    """The typed form of ``program``, which ``build`` made of ``spec``. Raises SpecError."""
    assert program.level is Level.PARSED
    return _or_raise(analyse(spec).typed, spec)


def _or_raise(program: Program | None, spec: Spec) -> Program:
    if program is None:
        raise SpecError(analyse(spec).diagnostics)
    return program


def analyse(spec: Spec) -> Analysis:
    """Read, type and check ``spec``; nothing is raised."""
    findings = Findings()
    known = _declared(spec)
    always = Guard.always(spec.option_names)
    guards: dict[str, Guard] = {}
    for state in spec.state:
        if state.when is not None:
            guards[state.name] = read_guard(state.when, spec.option_names, known, findings) or always
    scope = scope_of(spec, guards)
    lines: list[Line] = []
    for statement in spec.update:
        guard: Guard | None = always
        if statement.when is not None:
            guard = read_guard(statement.when, spec.option_names, known, findings)
        equation = read_equation(statement.equation, findings)
        if equation is not None:
            lines.append(Line(statement.equation, equation, guard if guard is not None else always))
    parsed = _program(spec, scope, tuple(lines), {})
    types = _temporaries(scope, lines)
    typed = _typed(spec, scope, lines, types, findings)
    broken = findings.has_errors
    return Analysis(None if broken else parsed, None if broken else typed, findings.all())


def _declared(spec: Spec) -> tuple[str, ...]:
    named = (*spec.state, *spec.hyperparameters, *spec.options)
    return ("param", "grad", "t", *(item.name for item in named))


def _program(spec: Spec, scope: Scope, lines: tuple[Line, ...], types: dict[str, Type | None]) -> Program:
    """The program at level PARSED, with ``types`` of the temporaries where known."""
    symbols = dict(scope.symbols)
    statements = []
    for line in lines:
        target = line.equation.target
        known = symbols.get(target)
        if known is None:
            symbols[target] = Symbol(
                target, Role.TEMPORARY, line.guard, types.get(target), line.equation.target_location
            )
        elif known.role is Role.TEMPORARY:
            symbols[target] = replace(known, guard=known.guard | line.guard)
        source = " ".join(line.text.text.split())
        statements.append(Assign(target, line.equation.value, line.guard, source, line.text.location))
    if not types:
        symbols = {name: replace(s, type=None) for name, s in symbols.items()}
    return Program(spec.name, Level.PARSED, scope.options, tuple(symbols.values()), tuple(statements))


def _temporaries(scope: Scope, lines: list[Line]) -> dict[str, Type | None]:
    """The type of each temporary over all its assignments: the least that holds them all."""
    types = scope.types
    names = {line.equation.target: None for line in lines if line.equation.target not in scope.symbols}
    found: dict[str, Type | None] = dict(names)
    changed = True
    while changed:
        changed = False
        for line in lines:
            target = line.equation.target
            if target not in found:
                continue
            typer = Typer(line.text, {**types, **found}, Findings(), lambda node, text: None)
            value = typer.visit(line.equation.value).type
            both = join(found[target], value)
            if both is not None and both != found[target]:
                found[target], changed = both, True
    return found


def _typed(
    spec: Spec, scope: Scope, lines: list[Line], temporaries: dict[str, Type | None], findings: Findings
) -> Program | None:
    types = {**scope.types, **temporaries}

    def unknown(node: Name, text: Text) -> None:
        assert node.location is not None
        hint = instead_of_name(node.name, types)
        findings.at("SG060", f"unknown name '{node.name}'", node.location, hint=hint, text=text)

    values: list[Expression] = []
    for line in lines:
        target, role = line.equation.target, scope.role(line.equation.target)
        value = Typer(line.text, types, findings, unknown).visit(line.equation.value)
        if role not in ASSIGNABLE:
            findings.at(
                "SG061", f"{target} is {DESCRIPTIONS[role]}; it can't be assigned", line.equation.target_location,
                text=line.text, hint="assign to a name of its own",
            )  # fmt: skip
        elif value.type is not None:
            value = _fits(line, role, value, types[target], findings)
        values.append(value)
    if any(value.type is None for value in values):
        return None
    program = _program(spec, scope, tuple(lines), temporaries or {"": None})
    statements = tuple(replace(s, value=v) for s, v in zip(program.statements, values, strict=True))
    return replace(program, level=Level.TYPED, statements=statements)


def _fits(line: Line, role: Role, value: Expression, type: Type | None, findings: Findings) -> Expression:
    """``value`` as the target takes it; what can't be is reported."""
    assert value.type is not None and value.location is not None
    target = line.equation.target
    if type is not None and value.type.is_bool != type.is_bool:
        if role is Role.TEMPORARY:
            message = f"{target} is a condition in one place and a number in another"
            findings.at("SG084", message, line.equation.target_location, text=line.text, hint="use two names")
        else:
            findings.at(
                "SG080", f"{target} holds a number, but this is a condition", value.location, text=line.text,
                hint="where(condition, 1, 0) makes a number of it",
            )  # fmt: skip
        return value
    if role is Role.SCALAR_STATE and value.type.is_element:
        findings.at(
            "SG085", f"{target} is one number a tensor, but this has a value for each element", value.location,
            text=line.text, hint="give the state the parameter's shape, or leave out param, grad and array state",
        )  # fmt: skip
        return value
    return rounded(value) if type is not None and type.is_element else value


def scalar_expression(text: Text, spec: Spec) -> Expression:
    """A typed expression over hyperparameters and options: a derived option, a constraint, an initial value.

    Raises SpecError with all that is wrong with it.
    """
    findings = Findings()
    expression = read_expression(text, findings)
    if expression is not None:
        expression = type_scalar(text, expression, spec, findings)
    findings.raise_errors()
    assert expression is not None
    return expression


def type_scalar(text: Text, expression: Expression, spec: Spec, findings: Findings) -> Expression:
    """As ``scalar_expression``, of an expression already read."""
    scope = scope_of(spec, {})
    allowed = {name: s.type for name, s in scope.symbols.items() if s.role in (Role.HYPERPARAMETER, Role.OPTION)}

    def unknown(node: Name, text: Text) -> None:
        assert node.location is not None
        if node.name in scope.symbols:
            message = f"{node.name} is {DESCRIPTIONS[scope.role(node.name)]}, which isn't known here"
            hint = "here stand only hyperparameters and options"
            findings.at("SG062", message, node.location, text=text, hint=hint)
        else:
            hint2 = instead_of_name(node.name, allowed)
            findings.at("SG060", f"unknown name '{node.name}'", node.location, text=text, hint=hint2)

    return Typer(text, allowed, findings, unknown).visit(expression)
