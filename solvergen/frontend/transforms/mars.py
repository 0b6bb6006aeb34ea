"""MARS: to the gradient a share of its change since the previous update is added, and the sum is clipped.

Yuan, Liu, Wu, Zhou, Gu: MARS: Unleashing the Power of Variance Reduction for Training Large Models (2024),
arXiv 2411.10438, algorithm 2, with the gradient of the previous update for that of the previous point.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.transforms.rule import (
    Illegal,
    Rule,
    Step,
    add,
    call,
    div,
    mul,
    name,
    number,
    renamed,
    sub,
)
from solvergen.ir.nodes import Compare, Reduce
from solvergen.spec.model import Hyperparameter, State

SUMMARY = (
    "to the gradient a share of its change since the previous update is added, and the sum clipped to norm 1"
)


def apply(rule: Rule) -> Rule:
    """Rules with a hyperparameter ``beta1`` below 1, the decay of their momentum."""
    rule.evaluates_once()
    beta = rule.hyperparameter("beta1")
    if beta is None or beta.below is None or beta.below > 1:
        raise Illegal("the rule has no hyperparameter 'beta1', below 1, that is the decay of its momentum")
    rule = rule.with_hyperparameters(
        Hyperparameter("gamma", 0.025, min=0.0, doc="how much of the change of the gradient is added")
    ).with_state(State("last_grad", 0.0, doc="the gradient of the previous update"))
    fresh = rule.fresh()
    change, corrected, c = fresh.take("change"), fresh.take("corrected"), fresh.take("c")
    share = mul(name("gamma"), div(name("beta1"), sub(number(1), name("beta1"))))
    first = Compare("==", name("t"), number(1))
    made = (
        Step(change, call("where", first, number(0), sub(name("grad"), name("last_grad")))),
        Step(corrected, add(name("grad"), mul(share, name(change)))),
        Step(c, div(name(corrected), call("max", Reduce("norm2", (name(corrected),)), number(1)))),
    )
    steps = [_reading(step, c) for step in rule.steps]
    return replace(rule, steps=(*made, *steps, Step("last_grad", name("grad"))))


def _reading(step: Step, gradient: str) -> Step:
    assert step.value is not None
    value = renamed(step.value, "grad", gradient)
    return step if value == step.value else replace(step, value=value, text=None)
