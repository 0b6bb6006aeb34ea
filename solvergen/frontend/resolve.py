"""From a spec to a typed program: equations parsed, names resolved, types found, everything checked."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from solvergen.errors import Diagnostic
from solvergen.frontend import checks
from solvergen.frontend.conditions import read_when
from solvergen.frontend.findings import Findings
from solvergen.frontend.flow import Line, check_dead, check_flow
from solvergen.frontend.infer import Typer, join, rounded
from solvergen.frontend.parse import (
    gradient_statement,
    is_gradient,
    read_equation,
    read_expression,
    target_of,
)
from solvergen.frontend.penalties import with_penalty
from solvergen.frontend.scope import ASSIGNABLE, DESCRIPTIONS, Scope, scope_of
from solvergen.frontend.suggestions import instead_of_name, nearest
from solvergen.frontend.transforms import transformed
from solvergen.ir.guards import Guard, guard_of
from solvergen.ir.nodes import Expression, GradientAt, Name, names_in
from solvergen.ir.program import Assign, Level, Program, Role, Symbol
from solvergen.ir.types import Type
from solvergen.spec.model import COPY_OF_PARAM, Text
from solvergen.spec.names import problem_with_name

if TYPE_CHECKING:
    from solvergen.spec.model import Spec


@dataclass(frozen=True)
class Analysis:
    """A spec seen through: its programs (None where errors forbid one) and everything found."""

    parsed: Program | None
    typed: Program | None
    diagnostics: tuple[Diagnostic, ...]
    spec: Spec


def analyse(spec: Spec) -> Analysis:
    """Read, type and check ``spec``, with its transforms and its penalty applied; nothing is raised."""
    spec, found = transformed(spec)
    if not found:
        spec, found = with_penalty(spec)
    if found:
        return Analysis(None, None, tuple(found), spec)
    return _Analyser(spec).run()


def scalar_expression(text: Text, spec: Spec) -> Expression:
    """A typed expression over hyperparameters and options: a derived option, a constraint, an initial value.

    Raises SpecError with all that is wrong with it.
    """
    findings = Findings()
    expression = read_expression(text, findings)
    if expression is not None:
        expression = _type_scalar(text, expression, scope_of(spec, {}), _SETTINGS, findings)
    findings.raise_errors()
    assert expression is not None
    return expression


_SETTINGS = (Role.HYPERPARAMETER, Role.OPTION)
_NUMBERS = {Role.SCALAR_STATE: "one number a tensor", Role.SHARED_STATE: "one number for the whole optimizer"}


def _type_scalar(
    text: Text, expression: Expression, scope: Scope, roles: Collection[Role], findings: Findings
) -> Expression:
    """``expression`` typed over the symbols of ``roles`` only."""
    types = {name: s.type for name, s in scope.symbols.items() if s.role in roles}

    def unknown(node: Name, text: Text) -> None:
        assert node.location is not None
        if node.name in scope.symbols:
            message = f"{node.name} is {DESCRIPTIONS[scope.role(node.name)]}, which isn't known here"
            hint = "here stand only hyperparameters" + (" and options" if Role.OPTION in roles else "")
            findings.at("SG062", message, node.location, text=text, hint=hint)
        else:
            instead = instead_of_name(node.name, types) or "declare it under hyperparameters"
            findings.at("SG060", f"unknown name '{node.name}'", node.location, text=text, hint=instead)

    return Typer(text, types, findings, unknown).visit(expression)


@dataclass
class _Declarations:
    """What a spec says outside its update, as far as it could be read."""

    derived: dict[str, Expression] = field(default_factory=dict)
    initial: list[Expression] = field(default_factory=list)
    constraints: list[tuple[Text, Expression, Expression | None]] = field(default_factory=list)


class _Analyser:
    """One look at one spec."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.options = spec.option_names
        self.always = Guard.always(self.options)
        self.findings = Findings()
        states = tuple(state.name for state in spec.state)
        settings = (*(h.name for h in spec.hyperparameters), *spec.option_names)
        self.declared = ("param", "grad", "t", *states, *settings)
        self.whens: list[tuple[Text, Guard]] = []
        self.conditions: list[Expression] = []
        self.lines: list[Line] = []
        self.opaque: set[str] = set(spec.unclear)  # targets of statements that can't be read
        self.partial = spec.incomplete - {"name"}  # sections of which the reader has left something out
        if self.partial:
            self.opaque.add("")
        self.torn: set[str] = set()  # temporaries that are conditions here and numbers there
        self.excused: set[str] = set()  # declared names that a misspelt one probably meant
        self.writes_grad = None if spec.writes_grad is None else self._guard(spec.writes_grad)

    def run(self) -> Analysis:
        """Everything, in the order in which later steps need earlier ones."""
        scope = scope_of(self.spec, self._guards_of_state())
        self._read_statements()
        declarations = self._read_declarations(scope)
        temporaries = self._types_of_temporaries(scope)
        values = self._type_statements(scope, temporaries)
        self._check(scope, declarations)
        if self.findings.has_errors:
            return Analysis(None, None, self.findings.all(), self.spec)
        allowed = checks.allowed_settings(
            self.options, [(that, when) for _, that, when in declarations.constraints]
        )
        parsed = replace(self._program(scope), allowed=allowed)
        statements = tuple(replace(s, value=v) for s, v in zip(parsed.statements, values, strict=True))
        symbols = tuple(replace(s, type=s.type or temporaries[s.name]) for s in parsed.symbols)
        typed = replace(parsed, level=Level.TYPED, symbols=symbols, statements=statements)
        untyped = tuple(replace(s, type=None) for s in parsed.symbols)
        return Analysis(replace(parsed, symbols=untyped), typed, self.findings.all(), self.spec)

    def _guard(self, text: Text | None) -> Guard:
        """The guard of a ``when``; where it can't be read (which is reported), as if there were none."""
        if text is None or self._is_unclear(text):
            return self.always
        condition = read_when(text, self.options, self.declared, self.findings)
        guard = None if condition is None else guard_of(condition, self.options)
        if condition is None or guard is None:
            self.opaque.add("")  # what is used when isn't known
            return self.always
        self.conditions.append(condition)
        if all(seen.location != text.location for seen, _ in self.whens):  # a `do` may list several equations
            self.whens.append((text, guard))
        return guard

    def _is_unclear(self, text: Text) -> bool:
        """Does ``text`` mention a name that may be declared in what the reader left out?"""
        return not self.spec.unclear.isdisjoint(re.findall(r"\w+", text.text))

    def _guards_of_state(self) -> dict[str, Guard]:
        return {state.name: self._guard(state.when) for state in self.spec.state}

    def _read_statements(self) -> None:
        evaluations = 0
        for statement in self.spec.update:
            guard = self._guard(statement.when)
            if is_gradient(statement.equation):
                if statement.when is not None and not self._is_unclear(statement.when):
                    self.findings.add(
                        "SG079",
                        "the gradient is evaluated whatever the options are",
                        statement.equation,
                        0,
                        len(statement.equation.text),
                        hint="take `gradient` out of the `when`",
                    )
                evaluations += 1
                evaluated = gradient_statement(statement.equation, evaluations - 1)
                self.lines.append(Line(statement.equation, evaluated, self.always))
                continue
            equation = read_equation(statement.equation, self.findings)
            if equation is None:
                self.opaque.add(target_of(statement.equation) or "")
            else:
                self.lines.append(Line(statement.equation, equation, guard, statement.wraps))

    def _read_declarations(self, scope: Scope) -> _Declarations:
        result = _Declarations()
        for option in self.spec.options:
            if isinstance(option.default, Text):
                default = self._scalar(option.default, scope, (Role.HYPERPARAMETER,), condition=True)
                if default is not None:
                    result.derived[option.name] = default
        for state in self.spec.state:
            if isinstance(state.init, Text) and state.init.text != COPY_OF_PARAM:
                initial = self._scalar(state.init, scope, _SETTINGS, condition=False)
                if initial is not None:
                    result.initial.append(initial)
        for constraint in self.spec.constraints:
            that = self._scalar(constraint.that, scope, _SETTINGS, condition=True)
            when = None
            if constraint.when is not None:
                when = self._scalar(constraint.when, scope, _SETTINGS, condition=True)
                if when is None:
                    continue
            if that is not None:
                result.constraints.append((constraint.that, that, when))
        return result

    def _scalar(
        self, text: Text, scope: Scope, roles: Collection[Role], *, condition: bool
    ) -> Expression | None:
        """A condition or a number over settings; None if something is wrong with it."""
        expression = None if self._is_unclear(text) else read_expression(text, self.findings)
        if expression is None:
            self.opaque.add("")
            return None
        checks.check_constants(text, expression, self.findings)
        typer = Typer(text, {}, self.findings, lambda node, text: None)
        typed = _type_scalar(text, expression, scope, roles, self.findings)
        fits = typer.condition(typed, "this") if condition else typer.number(typed, "this")
        return typed if fits else None

    def _types_of_temporaries(self, scope: Scope) -> dict[str, Type | None]:
        """The type of each temporary over all its assignments: the least that holds them all."""
        found: dict[str, Type | None] = {
            line.equation.target: None for line in self.lines if line.equation.target not in scope.symbols
        }
        types = scope.types
        lines = [(line, frozenset(names_in(line.equation.value))) for line in self.lines]
        stale = set(found)  # read somewhere with another type than now
        first = True
        while stale:
            before, stale = stale, set()
            for line, names in lines:
                target = line.equation.target
                if target not in found or not (first or names & (before | stale)):
                    continue
                typer = Typer(line.text, {**types, **found}, Findings(), lambda node, text: None)
                type = typer.visit(line.equation.value).type
                both = join(found[target], type)
                if both is None and type is not None:
                    self.torn.add(target)
                elif both != found[target]:
                    found[target] = both
                    stale.add(target)
            first = False
        return found

    def _type_statements(self, scope: Scope, temporaries: dict[str, Type | None]) -> list[Expression]:
        types = {**dict.fromkeys(self.opaque), **scope.types, **temporaries, **dict.fromkeys(self.torn)}
        return [self._type_statement(line, scope, types, temporaries) for line in self.lines]

    def _type_statement(
        self, line: Line, scope: Scope, types: dict[str, Type | None], temporaries: dict[str, Type | None]
    ) -> Expression:
        target, role = line.equation.target, scope.role(line.equation.target)
        checks.check_constants(line.text, line.equation.value, self.findings)

        def unknown(node: Name, text: Text) -> None:
            assert node.location is not None
            near = nearest(node.name, types)
            if near is not None:
                self.excused.add(near)
            hint = instead_of_name(node.name, types) or "declare it under hyperparameters, or assign it first"
            self.findings.at("SG060", f"unknown name '{node.name}'", node.location, hint=hint, text=text)

        value = Typer(line.text, types, self.findings, unknown).visit(line.equation.value)
        place = line.equation.target_location
        problem = problem_with_name(target) if role is Role.TEMPORARY and not line.wraps else None
        if isinstance(value, GradientAt):
            return value
        if role not in ASSIGNABLE and not (line.wraps and role is Role.GRAD):
            message = f"{target} is {DESCRIPTIONS[role]}; it can't be assigned"
            self.findings.at("SG061", message, place, text=line.text, hint="assign to a name of its own")
        elif problem is not None:
            message = f"'{target}' can't be the name of a temporary: {problem[1]}"
            self.findings.at("SG063", message, place, text=line.text, hint="choose another name")
        elif value.type is not None:
            return self._fit(line, role, value, {**types, **temporaries}[target])
        return value

    def _fit(self, line: Line, role: Role, value: Expression, type: Type | None) -> Expression:
        """``value`` as the target takes it; what can't be is reported."""
        assert value.type is not None
        assert value.location is not None
        target = line.equation.target
        if type is not None and value.type.is_bool != type.is_bool:
            if role is Role.TEMPORARY:
                message = f"{target} is a condition in one place and a number in another"
                self.findings.at(
                    "SG084", message, line.equation.target_location, text=line.text, hint="use two names"
                )
            else:
                self.findings.at(
                    "SG080",
                    f"{target} holds a number, but this is a condition",
                    value.location,
                    text=line.text,
                    hint="where(condition, 1, 0) makes a number of it",
                )
        elif role in _NUMBERS and value.type.is_element and not self.partial:
            self.findings.at(
                "SG085",
                f"{target} is {_NUMBERS[role]}, but this has a value for each element",
                value.location,
                text=line.text,
                hint="give the state the parameter's shape, or reduce the elements: sum(...), norm2(...)",
            )
        elif type is not None and type.is_element:
            return rounded(value)
        return value

    def _check(self, scope: Scope, declarations: _Declarations) -> None:
        findings, spec = self.findings, self.spec
        if self.partial:
            if self.partial == {"hyperparameters"}:
                # What is assigned when doesn't hang on them, unless constraints are purely on options.
                allowed = checks.allowed_settings(
                    self.options, [(that, when) for _, that, when in declarations.constraints]
                )
                check_flow(spec, scope, self.lines, frozenset(self.opaque), allowed, findings)
            return  # all else would mostly repeat in other words what the reader has said
        allowed = checks.allowed_settings(
            self.options, [(that, when) for _, that, when in declarations.constraints]
        )
        known = checks.ranges_of(spec)
        checks.check_whens(self.whens, allowed, findings)
        for option in spec.options:
            if option.name in declarations.derived and isinstance(option.default, Text):
                checks.check_derived(option.default, declarations.derived[option.name], known, findings)
        for text, that, when in declarations.constraints:
            checks.check_constraint(spec, text, that, when, declarations.derived, known, findings)
        for line in self.lines:
            checks.check_conditions(line.text, line.equation.value, line.guard & allowed, known, findings)
        check_flow(spec, scope, self.lines, frozenset(self.opaque), allowed, findings)
        if not self.opaque:
            others = (*declarations.derived.values(), *declarations.initial, *self.conditions)
            mentioned = frozenset(name for expression in others for name in names_in(expression))
            checks.check_use(spec, self.lines, mentioned, frozenset(self.excused), findings)
        if not findings.has_errors:
            # Of a program that is wrong these would mostly repeat the error in other words.
            check_dead(scope, self.lines, allowed, findings, self.writes_grad)
            checks.check_waste(spec, scope, self.lines, allowed, findings)

    def _program(self, scope: Scope) -> Program:
        symbols = dict(scope.symbols)
        statements = []
        for line in self.lines:
            target = line.equation.target
            known = symbols.get(target)
            if known is None:
                place = line.equation.target_location
                symbols[target] = Symbol(target, Role.TEMPORARY, line.guard, None, place)
            elif known.role is Role.TEMPORARY:
                symbols[target] = replace(known, guard=known.guard | line.guard)
            source = " ".join(line.text.text.split())
            statements.append(Assign(target, line.equation.value, line.guard, source, line.text.location))
        return Program(
            self.spec.name,
            Level.PARSED,
            self.options,
            tuple(symbols.values()),
            tuple(statements),
            writes_grad=self.writes_grad,
        )
