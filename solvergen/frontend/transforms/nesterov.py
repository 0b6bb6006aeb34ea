"""Nesterov's momentum: the step is taken with the momentum as the same gradient would make it once more.

Dozat: Incorporating Nesterov Momentum into Adam (2016), section 2: of m = mu*m + g, the step has mu*m + g
with the new m in place of m, as in Sutskever, Martens, Dahl, Hinton: On the importance of initialization and
momentum in deep learning (2013).
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.transforms.rule import Illegal, Rule, Step, reads, renamed
from solvergen.ir.nodes import Binary, Call, Expression, Name, Number, Unary, names_in

SUMMARY = "the step is taken with the momentum as the same gradient would make it once more"


def apply(rule: Rule) -> Rule:
    """Rules with one momentum: a state ``m = a*m + b``, b linear in the gradient, which is then read."""
    rule.evaluates_once()
    degrees: dict[str, int | None] = {"grad": 1}
    found = []
    for i, step in enumerate(rule.steps):
        assert step.value is not None
        if _is_momentum(rule, step, degrees):
            found.append(i)
        degrees[step.target] = _degree(step.value, degrees)
    if len(found) != 1:
        some = "no" if not found else "more than one"
        raise Illegal(f"the rule has {some} momentum: a state m = a*m + b, where b is linear in the gradient")
    place = found[0]
    momentum = rule.steps[place]
    ahead = rule.fresh().take(f"{momentum.target}_ahead")
    rest = [_reading(step, momentum.target, ahead) for step in rule.steps[place + 1 :]]
    if all(new is old for new, old in zip(rest, rule.steps[place + 1 :], strict=True)):
        raise Illegal(f"the rule doesn't read {momentum.target} any more once it is updated")
    made = replace(momentum, target=ahead, text=None)
    return replace(rule, steps=(*rule.steps[: place + 1], made, *rest))


def _reading(step: Step, old: str, new: str) -> Step:
    assert step.value is not None
    return replace(step, value=renamed(step.value, old, new), text=None) if reads(step.value, old) else step


def _is_momentum(rule: Rule, step: Step, degrees: dict[str, int | None]) -> bool:
    value = step.value
    state = any(s.name == step.target and s.shape == "param" for s in rule.state)
    if not state or step.when is not None or not isinstance(value, Binary) or value.op != "+":
        return False
    kept, new = value.left, value.right
    product = isinstance(kept, Binary) and kept.op == "*" and kept.right == Name(step.target)
    return product and step.target not in names_in(new) and _degree(new, degrees) == 1


def _degree(e: Expression, degrees: dict[str, int | None]) -> int | None:
    """The degree in the gradient, of sums the largest; None for what is no polynomial in it."""
    if isinstance(e, Name):
        return degrees.get(e.name, 0)
    of = [_degree(operand, degrees) for operand in e.operands]
    known = [d for d in of if d is not None]
    if len(known) < len(of):
        return None
    if isinstance(e, Unary) and e.op == "-":
        return known[0]
    if isinstance(e, Binary) and e.op in ("+", "-"):
        return max(known)
    if isinstance(e, Binary) and e.op == "*":
        return sum(known)
    if isinstance(e, Binary) and e.op == "/" and known[1] == 0:
        return known[0]
    if isinstance(e, Binary) and e.op == "**" and isinstance(e.right, Number) and e.right.integral:
        return known[0] * int(e.right.value) if e.right.value >= 0 else None
    if isinstance(e, Call) and e.function == "where" and known[0] == 0:
        return max(known[1:])
    return 0 if not any(known) else None
