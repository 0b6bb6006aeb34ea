"""How values flow from statement to statement under each setting of the options.

Guards are truth tables over the options, so "assigned before it is used, whatever the options" is
decided exactly. ``allowed`` are the settings that the spec's constraints on options leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product
from typing import TYPE_CHECKING

from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import Equation
from solvergen.frontend.scope import Scope
from solvergen.frontend.suggestions import nearest
from solvergen.ir.guards import Guard, guard_of
from solvergen.ir.nodes import Call, Expression, Name
from solvergen.ir.program import Role

if TYPE_CHECKING:
    from solvergen.spec.model import Spec, Text


@dataclass(frozen=True)
class Line:
    """A statement of the spec that could be read, and the settings under which it is there."""

    text: Text
    equation: Equation
    guard: Guard
    wraps: bool = False


def reads(expression: Expression, guard: Guard) -> Iterator[tuple[Name, Guard]]:
    """Every name that ``expression`` reads, with the settings under which it matters.

    ``where`` on a condition of options reads each branch only where that branch is taken.
    """
    if isinstance(expression, Name):
        yield expression, guard
    elif isinstance(expression, Call) and expression.function == "where":
        condition, first, second = expression.args
        chosen = guard_of(condition, guard.options)
        yield from reads(condition, guard)
        yield from reads(first, guard if chosen is None else guard & chosen)
        yield from reads(second, guard if chosen is None else guard & ~chosen)
    else:
        for operand in expression.operands:
            yield from reads(operand, guard)


def setting_text(missing: Guard, among: Guard) -> str:
    """A short description of settings in ``missing``, told apart from the rest of ``among``.

    Empty if ``missing`` is all of ``among``; else " when amsgrad is off", say, which may name only
    some of the settings.
    """
    if among.implies(missing):
        return ""
    on = {name: Guard.option(missing.options, name) for name in missing.options}
    off = {name: ~guard for name, guard in on.items()}
    for size in range(1, len(missing.options) + 1):
        for names in combinations(missing.options, size):
            for values in product((True, False), repeat=size):
                cube = among
                for name, value in zip(names, values, strict=True):
                    cube = cube & (on if value else off)[name]
                if not cube.is_never and cube.implies(missing):
                    parts = [f"{n} is {'on' if v else 'off'}" for n, v in zip(names, values, strict=True)]
                    return " when " + " and ".join(parts)
    raise AssertionError("missing lies within among")


def check_flow(
    spec: Spec, scope: Scope, lines: list[Line], opaque: frozenset[str], allowed: Guard, findings: Findings
) -> None:
    """Use before assignment, state outside its ``when``, a parameter that doesn't change.

    ``opaque``: targets of statements that couldn't be read, of which nothing is claimed.
    """
    _check_order_of_use(scope, lines, opaque, allowed, findings)
    if opaque:
        return
    _check_param(spec, lines, allowed, findings)


def _check_order_of_use(
    scope: Scope, lines: list[Line], opaque: frozenset[str], allowed: Guard, findings: Findings
) -> None:
    assigned: dict[str, Guard] = {}
    never = Guard.never(scope.options)
    later = {line.equation.target for line in lines}
    for line in lines:
        for node, guard in reads(line.equation.value, line.guard & allowed):
            name = node.name
            if scope.role(name) is not Role.TEMPORARY:
                _check_exists(scope, name, guard, node, line, findings)
            elif name in later and name not in opaque:
                missing = guard & ~assigned.get(name, never)
                if not missing.is_never:
                    assert node.location is not None
                    findings.at(
                        "SG072",
                        f"{name} is used before it is assigned{setting_text(missing, guard)}",
                        node.location,
                        text=line.text,
                        hint=_how_to_assign(name, line, lines),
                    )
        target = line.equation.target
        if scope.role(target) is Role.TEMPORARY:
            assigned[target] = assigned.get(target, never) | line.guard
        else:
            _check_exists(scope, target, line.guard & allowed, line.equation, line, findings)


def _how_to_assign(name: str, line: Line, lines: list[Line]) -> str:
    if nearest("param", [name]) is not None and all(other.equation.target != "param" for other in lines):
        return "did you mean 'param'?"
    before = lines[: lines.index(line)]
    if any(other.equation.target == name for other in before):
        return "assign it under the other options too, or read it under the same `when`"
    return "statements run from top to bottom: assign it first, or make it state if it is last step's value"


def _check_exists(
    scope: Scope, name: str, guard: Guard, place: Name | Equation, line: Line, findings: Findings
) -> None:
    """State is touched only where its ``when`` holds."""
    symbol = scope.symbols[name]
    missing = guard & ~symbol.guard
    if symbol.role not in (Role.STATE, Role.SCALAR_STATE, Role.SHARED_STATE) or missing.is_never:
        return
    there = symbol.guard.text()
    elsewhere = setting_text(missing, guard) or " only where it does not exist"
    if isinstance(place, Name):
        location, doing = place.location, "used"
        hint = f"put it under `when: {there}`, or choose with where({there}, ..., ...)"
    else:
        location, doing = place.target_location, "assigned"
        hint = f"put it under `when: {there}`"
    assert location is not None
    message = f"{name} exists only when {there}, but is {doing}{elsewhere}"
    findings.at("SG073", message, location, text=line.text, hint=hint)


def _check_param(spec: Spec, lines: list[Line], allowed: Guard, findings: Findings) -> None:
    """Under every setting the parameter is assigned."""
    assignments = [line for line in lines if line.equation.target == "param"]
    if not assignments:
        targets = [line.equation.target for line in lines]
        near = nearest("param", [t for t in targets if t != "param"])
        if near is not None and near not in (s.name for s in spec.state):
            line = next(line for line in lines if line.equation.target == near)
            location, hint = line.equation.target_location, f"did you mean 'param' by '{near}'?"
            findings.at("SG070", "param is never assigned", location, hint=hint, text=spec)
            return
        location = lines[-1].text.location if lines else spec.location
        findings.at(
            "SG070",
            "param is never assigned: the rule changes nothing",
            location,
            text=spec,
            hint="end with an equation such as param = param - lr*grad",
        )
        return
    covered = Guard.never(allowed.options)
    for line in assignments:
        covered = covered | line.guard
    missing = allowed & ~covered
    if not missing.is_never:
        findings.at(
            "SG071",
            f"param is not assigned{setting_text(missing, allowed)}",
            assignments[-1].equation.target_location,
            text=spec,
            hint="assign it under the other options too",
        )


def check_dead(
    scope: Scope, lines: list[Line], allowed: Guard, findings: Findings, writes_grad: Guard | None = None
) -> None:
    """Statements whose value nothing reads (warnings). What a dead statement reads counts as read."""
    never = Guard.never(scope.options)
    live = {
        name: symbol.guard
        for name, symbol in scope.symbols.items()
        if symbol.role in (Role.PARAM, Role.STATE, Role.SCALAR_STATE, Role.SHARED_STATE)
    }
    if writes_grad is not None:
        live["grad"] = writes_grad
    ever_read = {node.name for line in lines for node, _ in reads(line.equation.value, line.guard)}
    for line in reversed(lines):
        target, value = line.equation.target, line.equation.value
        if isinstance(value, Name) and value.name == target:
            findings.at(
                "SG078",
                f"{target} is assigned to itself",
                line.equation.target_location,
                warning=True,
                text=line.text,
                hint="leave the statement out",
            )
        needed = live.get(target, never) & line.guard & allowed
        if needed.is_never:
            _report_dead(scope, line, target in ever_read, findings)
        live[target] = live.get(target, never) & ~line.guard
        for node, guard in reads(value, line.guard & allowed):
            live[node.name] = live.get(node.name, never) | guard


def _report_dead(scope: Scope, line: Line, read_elsewhere: bool, findings: Findings) -> None:
    target = line.equation.target
    if read_elsewhere or target in scope.symbols:
        message, hint = (
            f"this value of {target} is overwritten before anything reads it",
            "leave the statement out",
        )
    else:
        near = nearest(target, scope.symbols)
        message = f"{target} is never used"
        hint = f"did you mean '{near}'?" if near is not None else "leave the statement out"
    findings.at("SG077", message, line.equation.target_location, warning=True, text=line.text, hint=hint)
