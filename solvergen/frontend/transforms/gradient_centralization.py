"""Gradient centralization: the gradient of each row of weights loses its mean.

Yong, Huang, Hua, Zhang: Gradient Centralization: A New Optimization Technique for Deep Neural Networks
(2020), arXiv 2004.01461, equation 1. A row is all that belongs to one index of the first axis, as torch has
the outputs of layers; vectors and single numbers are left alone.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.transforms.rule import Illegal, Rule, Step, call, name, number, reads, renamed, sub
from solvergen.ir.nodes import Compare, Extent, Reduce, walk
from solvergen.ir.reductions import NDIM

SUMMARY = "the gradient loses its mean over all axes but the first"

VIEW = "leading"


def apply(rule: Rule) -> Rule:
    """Rules that evaluate the gradient once, and reduce along no lines but ``leading`` ones."""
    rule.evaluates_once()
    _other_lines(rule)
    centred = rule.fresh().take("centred")
    mean = Reduce("mean", (name("grad"),), along=VIEW)
    value = sub(name("grad"), call("where", Compare(">", Extent(NDIM), number(1)), mean, number(0)))
    steps = [_reading(step, centred) for step in rule.steps]
    if all(new is old for new, old in zip(steps, rule.steps, strict=True)):
        raise Illegal("the rule doesn't read the gradient")
    return replace(rule, steps=(Step(centred, value), *steps))


def _reading(step: Step, centred: str) -> Step:
    assert step.value is not None
    if not reads(step.value, "grad"):
        return step
    return replace(step, value=renamed(step.value, "grad", centred), text=None)


def _other_lines(rule: Rule) -> None:
    along = {
        node.along
        for step in rule.steps
        if step.value is not None
        for node in walk(step.value)
        if isinstance(node, Reduce) and node.along
    }
    shapes = {state.shape for state in rule.state} - {"param", "scalar", "shared"}
    others = sorted((along | shapes) - {VIEW})
    if others:
        raise Illegal(f"the rule knows {others[0]} of tensors, and would have to know {VIEW} ones too")
    if any(step.target == "grad" for step in rule.steps):
        raise Illegal("the rule assigns to the gradient")
