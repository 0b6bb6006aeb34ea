"""Transforms: rewritings of one rule into another.

Each is a pure function on equations in IR, with a check of what it may be applied to.

A spec with ``of`` and ``transform`` comes from the reader with the equations of the other spec; here the
transforms are applied, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from solvergen.errors import Diagnostic, Location
from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import is_gradient, read_equation
from solvergen.frontend.transforms import (
    cautious,
    gradient_centralization,
    lookahead,
    mars,
    nesterov,
    schedule_free,
)
from solvergen.frontend.transforms.rule import Illegal, Rule, Step
from solvergen.ir.text import expression_text
from solvergen.spec.digest import digest_of
from solvergen.spec.made import text_at
from solvergen.spec.model import Hyperparameter, Spec, State, Statement, Text
from solvergen.spec.suggest import instead_of_key

Transform = Callable[[Rule], Rule]

TRANSFORMS: dict[str, tuple[Transform, str]] = {
    module.__name__.rpartition(".")[2]: (module.apply, module.SUMMARY)
    for module in (cautious, gradient_centralization, lookahead, mars, nesterov, schedule_free)
}
"""By name: what it does to a rule, and that in words."""


def transformed(spec: Spec) -> tuple[Spec, list[Diagnostic]]:
    """``spec`` with its transforms applied, or as it is and what is wrong with them."""
    if not spec.transforms:
        return spec, []
    rule = _rule(spec)
    if rule is None:  # an equation can't be read, which is said when it is analysed
        return replace(spec, transforms=()), []
    names: list[str] = []
    for text in spec.transforms:
        name, line = text.text.strip(), text.line_of(text.location)
        if name not in TRANSFORMS:
            near = instead_of_key(name, TRANSFORMS)
            hint = f"did you mean '{near}'?" if near else f"there are {', '.join(TRANSFORMS)}"
            found = Diagnostic("SG038", f"there is no transform '{name}'", text.location, hint, line)
            return replace(spec, transforms=()), [found]
        try:
            rule = TRANSFORMS[name][0](rule)
        except Illegal as problem:
            message = f"{name} can't be applied here: {problem.message}"
            return replace(spec, transforms=()), [
                Diagnostic("SG039", message, text.location, problem.hint, line)
            ]
        rule = _written(rule, text)
        names.append(name)
    return _spec(spec, rule, names), []


def _rule(spec: Spec) -> Rule | None:
    findings = Findings()
    steps = []
    for statement in spec.update:
        if is_gradient(statement.equation):
            steps.append(Step("gradient", None, statement.when, statement.equation))
            continue
        equation = read_equation(statement.equation, findings)
        if equation is None:
            return None
        steps.append(Step(equation.target, equation.value, statement.when, statement.equation))
    declared = [x for group in (spec.hyperparameters, spec.options, spec.state) for x in group]
    of = spec.base_location
    own = frozenset(x.name for x in declared if x.location != of)
    return Rule(spec.hyperparameters, spec.options, spec.state, tuple(steps), own)


def _written(rule: Rule, by: Text) -> Rule:
    """``rule`` with texts for what has none, at the name of the transform that made it."""
    place: Location = by.location

    def at(entry: Hyperparameter) -> Hyperparameter:
        return entry if entry.location is not None else replace(entry, location=place)

    def state_at(entry: State) -> State:
        if entry.location is not None:
            return entry
        init = entry.init
        if isinstance(init, Text):
            init = text_at(init.text, place, by.source)
        return replace(entry, init=init, location=place)

    steps = [
        step
        if step.text is not None or step.value is None
        else replace(step, text=text_at(f"{step.target} = {expression_text(step.value)}", place, by.source))
        for step in rule.steps
    ]
    return replace(
        rule,
        hyperparameters=tuple(at(h) for h in rule.hyperparameters),
        state=tuple(state_at(s) for s in rule.state),
        steps=tuple(steps),
    )


def _spec(spec: Spec, rule: Rule, names: list[str]) -> Spec:
    update = tuple(Statement(step.text, step.when) for step in rule.steps if step.text is not None)
    digest = digest_of(spec.name, rule.hyperparameters, rule.options, rule.state, update, spec.constraints)
    return replace(
        spec,
        hyperparameters=rule.hyperparameters,
        state=rule.state,
        update=update,
        digest=digest,
        base=f"{spec.base} by {', '.join(names)}",
        transforms=(),
    )
