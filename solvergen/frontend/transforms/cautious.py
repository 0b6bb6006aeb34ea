"""Cautious: elements whose step would go against the gradient don't move, and the others move further.

Liang, Chen, Liu, Liu: Cautious Optimizers: Improving Training with One Line of Code (2024), arXiv 2411.16085,
algorithm 1: the step is scaled by n/(k + xi), of n elements k that move; decay of weights isn't masked.
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
    gradient_of,
    mul,
    name,
    number,
    reads,
    replaced,
)
from solvergen.ir.nodes import Binary, Call, Compare, Expression, Reduce
from solvergen.spec.model import Hyperparameter

SUMMARY = "elements whose step would go against the gradient don't move, and the others move further"


def apply(rule: Rule) -> Rule:
    """Rules that end in ``param = param - U``, where decay of weights is a term of U beside the step."""
    rule.evaluates_once()
    place, change = rule.step_of_param()
    step = _step(change)
    rule = rule.with_hyperparameters(
        Hyperparameter("xi", 1.0, min=0.0, doc="added to the number of elements that move")
    )
    fresh = rule.fresh()
    taken, agrees, scale = fresh.take("proposed"), fresh.take("agrees"), fresh.take("scale")

    def sign(e: Expression) -> Expression:
        return call("sign", e)

    def count(yes: float, no: float) -> Expression:
        return Reduce("count_nonzero", (call("where", name(agrees), number(yes), number(no)),))

    masked = call("where", name(agrees), mul(name(scale), name(taken)), number(0))
    made = (
        Step(taken, step),
        Step(agrees, Compare(">", mul(sign(name(taken)), sign(gradient_of(rule))), number(0))),
        Step(scale, div(count(1, 2), add(count(1, 0), name("xi")))),
    )
    last = rule.steps[place]
    assert isinstance(last.value, Binary)
    changed = replaced(last.value.right, lambda e: masked if e == step else None)
    new = replace(last, value=replace(last.value, right=changed), text=None)
    return replace(rule, steps=(*rule.steps[:place], *made, new, *rule.steps[place + 1 :]))


def _step(change: Expression) -> Expression:
    """The part of what is subtracted that is no decay of the parameter. Raises Illegal."""
    found = list(_parts(change))
    if not found or any(part != found[0] for part in found):
        raise Illegal(
            "what is subtracted from param isn't a step, or the sum of one and of a term with param",
            "derive a spec in which the decay is a term: param = param - (step + lr*weight_decay*param)",
        )
    return found[0]


def _parts(change: Expression) -> list[Expression]:
    """Largest parts of ``change`` without ``param`` that are added to such as have it."""
    if not reads(change, "param"):
        return [change]
    if isinstance(change, Binary) and change.op == "+":
        sides = [side for side in (change.left, change.right) if not reads(side, "param")]
        return sides if len(sides) == 1 else []
    if isinstance(change, Binary) and change.op in ("*", "/"):
        if not reads(change.left, "param"):
            return _parts(change.right) if change.op == "*" else []
        return [] if reads(change.right, "param") else _parts(change.left)
    if isinstance(change, Call) and change.function == "where" and not reads(change.args[0], "param"):
        return [part for branch in change.args[1:] for part in _parts(branch)]
    return []
