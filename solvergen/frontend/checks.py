"""What a spec declares against what it uses; constants; conditions whose outcome is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from solvergen.errors import Location
from solvergen.frontend.findings import Findings
from solvergen.frontend.flow import Line, reads, setting_text
from solvergen.frontend.ranges import Range, range_of_hyperparameter, truth
from solvergen.frontend.scope import Scope
from solvergen.ir.evaluate import combine, constant, evaluate
from solvergen.ir.guards import Guard, guard_of
from solvergen.ir.nodes import Binary, Call, Compare, Expression, GradientAt, Reduce, names_in, walk
from solvergen.spec.names import WRAPPERS_PREFIX

if TYPE_CHECKING:
    from solvergen.spec.model import Spec, Text


def check_use(
    spec: Spec, lines: list[Line], mentioned: frozenset[str], excused: frozenset[str], findings: Findings
) -> None:
    """Hyperparameters, options and state that nothing reads or writes.

    ``mentioned``: names in conditions, derived options and initial values. ``excused``: names that a
    misspelt one probably meant.
    """
    read = {name for line in lines for name in names_in(line.equation.value)}
    written = {line.equation.target for line in lines}
    settings = mentioned | excused | read
    for h in spec.hyperparameters:
        if h.name not in settings and not h.name.startswith(WRAPPERS_PREFIX):
            _declared(spec, h.location, "SG064", f"{h.name} is never used", _UNUSED, findings)
    for option in spec.options:
        if option.name not in settings:
            _declared(
                spec, option.location, "SG065", f"option {option.name} is never used", _UNUSED, findings
            )
    for state in spec.state:
        name = state.name
        # A copy of the parameter that stays as it is, to be pulled towards, has its use.
        if name in excused or name in written or (name in read and state.copies_param):
            continue
        if name in read:
            message = f"state {name} is read but never assigned: it stays as it began"
            hint = f"assign it ({name} = ...), or make it a hyperparameter"
            _declared(spec, state.location, "SG067", message, hint, findings)
        else:
            _declared(spec, state.location, "SG066", f"state {name} is never used", _UNUSED, findings)


def check_waste(spec: Spec, scope: Scope, lines: list[Line], allowed: Guard, findings: Findings) -> None:
    """Memory for state that doesn't matter, or not under every setting (warnings)."""
    never = Guard.never(scope.options)
    touched: dict[str, Guard] = {}
    for line in lines:
        target, guard = line.equation.target, line.guard & allowed
        touched[target] = touched.get(target, never) | guard
        for node, there in reads(line.equation.value, guard):
            touched[node.name] = touched.get(node.name, never) | there
    reaching = _reaching_param(lines)
    for state in spec.state:
        name = state.name
        if name not in reaching and not state.output:
            message = f"state {name} never has an effect on param"
            hint = "use it, save its memory, or say `output: true` if it is for the caller to read"
            _declared(spec, state.location, "SG068", message, hint, findings, warning=True)
            continue
        exists = scope.symbols[name].guard & allowed
        idle = exists & ~touched.get(name, never)
        if not idle.is_never:
            message = f"state {name} takes memory but is not used{setting_text(idle, exists)}"
            _declared(spec, state.location, "SG069", message, "give it a `when`", findings, warning=True)


_UNUSED = "leave it out, or use it"


def _declared(
    spec: Spec,
    location: Location | None,
    code: str,
    message: str,
    hint: str,
    findings: Findings,
    *,
    warning: bool = False,
) -> None:
    findings.at(code, message, location or spec.location, text=spec, hint=hint, warning=warning)


def _reaching_param(lines: list[Line]) -> set[str]:
    """Names that param depends on, through any number of statements and steps."""
    sources: dict[str, set[str]] = {}
    for line in lines:
        sources.setdefault(line.equation.target, set()).update(names_in(line.equation.value))
    reaching: set[str] = set()
    waiting = ["param"]
    while waiting:
        name = waiting.pop()
        if name not in reaching:
            reaching.add(name)
            waiting.extend(sources.get(name, ()))
    return reaching


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
            hint = "to guard against zeros write where(x != 0, a/x, 0)"
            findings.at("SG086", "division by zero", node.location, text=text, hint=hint)
            continue
        if isinstance(node, (Reduce, GradientAt)):
            continue  # of constants: refused when types are found
        operands = [constant(operand) for operand in node.operands]
        values = [v for v in operands if v is not None]
        if not operands or len(values) != len(operands) or not all(math.isfinite(v) for v in values):
            continue
        value = combine(node, values)
        if not math.isfinite(value):
            what = "is not a number" if value != value else "is infinite in float64"
            hint = "constants are computed in float64: the largest is about 1.8e308"
            findings.at("SG088", f"this constant {what}", node.location, text=text, hint=hint)


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
