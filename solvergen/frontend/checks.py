"""What a spec declares against what it uses; constants; conditions whose outcome is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from solvergen.errors import Location
from solvergen.frontend.conditions import guard_of
from solvergen.frontend.constants import combine, constant, evaluate
from solvergen.frontend.findings import Findings
from solvergen.frontend.flow import Line, reads, setting_text
from solvergen.frontend.ranges import Range, range_of_hyperparameter, truth
from solvergen.frontend.scope import Scope
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Binary, Call, Compare, Expression, names_in, walk

if TYPE_CHECKING:
    from solvergen.spec.model import Spec, State, Text


def check_use(
    spec: Spec,
    scope: Scope,
    lines: list[Line],
    others: tuple[Expression, ...],
    excused: frozenset[str],
    allowed: Guard,
    findings: Findings,
) -> None:
    """Hyperparameters, options and state that nothing reads or writes.

    ``others``: derived options and initial values. ``excused``: names that a misspelt one probably meant.
    """
    read: dict[str, Guard] = {}
    written: dict[str, Guard] = {}
    never = Guard.never(scope.options)
    for line in lines:
        for node, guard in reads(line.equation.value, line.guard & allowed):
            read[node.name] = read.get(node.name, never) | guard
        target = line.equation.target
        written[target] = written.get(target, never) | (line.guard & allowed)
    mentioned = {name for expression in others for name in names_in(expression)}
    guards = [line.guard for line in lines] + [scope.symbols[s.name].guard for s in spec.state]
    for h in spec.hyperparameters:
        if h.name not in read and h.name not in mentioned and h.name not in excused:
            _declared(spec, h.location, "SG064", f"{h.name} is never used", findings)
    for option in spec.options:
        name = option.name
        decides = any(_flipped(guard, name) != guard for guard in guards)
        if not decides and name not in read and name not in mentioned and name not in excused:
            _declared(spec, option.location, "SG065", f"option {name} is never used", findings)
    reaching = _reaching_param(lines)
    for state in spec.state:
        if state.name not in excused:
            _check_state(
                spec, scope, state, read.get(state.name), written.get(state.name), reaching, allowed, findings
            )


def _flipped(guard: Guard, option: str) -> Guard:
    """``guard`` with the meaning of ``option`` turned round."""
    bit = 1 << guard.options.index(option)
    table = sum(1 << (i ^ bit) for i in range(1 << len(guard.options)) if guard.table >> i & 1)
    return Guard(guard.options, table)


def _declared(
    spec: Spec,
    location: Location | None,
    code: str,
    message: str,
    findings: Findings,
    hint: str | None = None,
    *,
    warning: bool = False,
) -> None:
    findings.at(
        code,
        message,
        location or spec.location,
        text=spec,
        hint=hint or "leave it out, or use it",
        warning=warning,
    )


def _check_state(
    spec: Spec,
    scope: Scope,
    state: State,
    read: Guard | None,
    written: Guard | None,
    reaching: set[str],
    allowed: Guard,
    findings: Findings,
) -> None:
    name = state.name
    if read is None and written is None:
        _declared(spec, state.location, "SG066", f"state {name} is never used", findings)
        return
    if written is None:
        _declared(
            spec,
            state.location,
            "SG067",
            f"state {name} is read but never assigned: it stays as it began",
            findings,
            f"assign it ({name} = ...), or make it a hyperparameter",
        )
        return
    if name not in reaching:
        message = f"state {name} never has an effect on param"
        _declared(
            spec, state.location, "SG068", message, findings, "use it, or save its memory", warning=True
        )
        return
    exists = scope.symbols[name].guard & allowed
    touched = written if read is None else read | written
    idle = exists & ~touched
    if not idle.is_never:
        message = f"state {name} takes memory but is not used{setting_text(idle, exists)}"
        _declared(spec, state.location, "SG069", message, findings, "give it a `when`", warning=True)


def _reaching_param(lines: list[Line]) -> set[str]:
    """Names that param depends on, through any number of statements and steps."""
    reaching = {"param"}
    while True:
        more = {
            name
            for line in lines
            if line.equation.target in reaching
            for name in names_in(line.equation.value)
            if name not in reaching
        }
        if not more:
            return reaching
        reaching |= more


def check_whens(guards: list[tuple[Text, Guard]], allowed: Guard, findings: Findings) -> None:
    """Conditions on options that hold under no setting, or under all."""
    for text, guard in guards:
        if (guard & allowed).is_never:
            hint = "leave out what stands under it, or change the condition"
            findings.add(
                "SG074", "this never holds, whatever the options are", text, 0, len(text.text), hint=hint
            )
        elif allowed.implies(guard):
            message = "this holds whatever the options are"
            findings.add("SG075", message, text, 0, len(text.text), hint="leave the `when` out", warning=True)


def check_constants(text: Text, expression: Expression, findings: Findings) -> None:
    """Divisions by a written zero, and constants that come to infinity or NaN."""
    for node in walk(expression):
        if node.location is None:
            continue
        if isinstance(node, Binary) and node.op in ("/", "//", "%") and constant(node.right) == 0:
            findings.at("SG086", "division by zero", node.location, text=text)
            continue
        operands = [constant(operand) for operand in node.operands]
        values = [v for v in operands if v is not None]
        if not operands or len(values) != len(operands) or not all(math.isfinite(v) for v in values):
            continue
        value = combine(node, values)
        if not math.isfinite(value):
            what = "is not a number" if value != value else "is infinite in float64"
            findings.at("SG088", f"this constant {what}", node.location, text=text)


def check_conditions(
    text: Text, expression: Expression, guard: Guard, known: dict[str, Range], findings: Findings
) -> None:
    """Conditions inside an equation whose outcome is known beforehand (warnings).

    ``guard``: settings under which the equation is there; ``known``: ranges of the hyperparameters and t.
    """
    if isinstance(expression, Call) and expression.function == "where":
        condition, first, second = expression.args
        chosen = guard_of(condition, guard.options)
        if chosen is not None and not guard.is_never:
            if guard.implies(chosen):
                _known_outcome(text, condition, True, findings)
            elif guard.implies(~chosen):
                _known_outcome(text, condition, False, findings)
            check_conditions(text, first, guard & chosen, known, findings)
            check_conditions(text, second, guard & ~chosen, known, findings)
            return
    if isinstance(expression, Compare):
        if expression.left == expression.right and expression.op in ("<", ">", "<=", ">="):
            assert expression.location is not None
            message = "a comparison of a value with itself"
            findings.at(
                "SG089",
                message,
                expression.location,
                text=text,
                warning=True,
                hint="x != x tests for NaN, x == x for its absence",
            )
            return
        outcome = truth(expression, known)
        if outcome is not None:
            _known_outcome(text, expression, outcome, findings)
    for operand in expression.operands:
        check_conditions(text, operand, guard, known, findings)


def _known_outcome(text: Text, node: Expression, outcome: bool, findings: Findings) -> None:
    assert node.location is not None
    message = f"this condition {'always' if outcome else 'never'} holds"
    findings.at(
        "SG089", message, node.location, text=text, warning=True, hint="write only the branch that is taken"
    )


def ranges_of(spec: Spec) -> dict[str, Range]:
    """What hyperparameters and t can be."""
    known = {h.name: range_of_hyperparameter(h) for h in spec.hyperparameters}
    return {**known, "t": Range(1.0, math.inf)}


def check_derived(text: Text, expression: Expression, known: dict[str, Range], findings: Findings) -> None:
    """A derived option that comes out the same for all hyperparameters."""
    outcome = truth(expression, known)
    if outcome is not None:
        message = f"this {'always' if outcome else 'never'} holds within the ranges of the hyperparameters"
        hint = f"write `default: {str(outcome).lower()}`, or change the ranges"
        findings.add("SG091", message, text, 0, len(text.text), hint=hint)


def check_constraint(
    spec: Spec,
    text: Text,
    that: Expression,
    when: Expression | None,
    derived: dict[str, Expression],
    known: dict[str, Range],
    findings: Findings,
) -> None:
    """A constraint that can't hold, can't fail, or that the defaults violate."""
    outcome = truth(that, known)
    if outcome is False and when is None:
        message = "this never holds within the ranges of the hyperparameters"
        findings.add("SG091", message, text, 0, len(text.text), hint="change the constraint or the ranges")
        return
    if outcome is True:
        message = "this always holds within the ranges of the hyperparameters"
        findings.add("SG092", message, text, 0, len(text.text), hint="leave the constraint out", warning=True)
        return
    values = defaults(spec, derived)
    applies = when is None or bool(evaluate(when, values))
    if applies and evaluate(that, values) == 0.0:
        message = "the defaults violate this constraint"
        findings.add(
            "SG090", message, text, 0, len(text.text), hint="change the defaults, or say `when` it applies"
        )


def defaults(spec: Spec, derived: dict[str, Expression]) -> dict[str, float]:
    """The default of every hyperparameter and option; derived options decided."""
    values = {h.name: h.default for h in spec.hyperparameters}
    for option in spec.options:
        if isinstance(option.default, bool):
            values[option.name] = float(option.default)
        elif option.name in derived:
            outcome = evaluate(derived[option.name], {h.name: h.default for h in spec.hyperparameters})
            values[option.name] = outcome if outcome is not None else 0.0
    return values


def allowed_settings(
    options: tuple[str, ...], constraints: list[tuple[Expression, Expression | None]]
) -> Guard:
    """The option settings that the constraints purely on options leave."""
    allowed = Guard.always(options)
    for that, when in constraints:
        holds = guard_of(that, options)
        applies = Guard.always(options) if when is None else guard_of(when, options)
        if holds is not None and applies is not None:
            allowed = allowed & (~applies | holds)
    return allowed
