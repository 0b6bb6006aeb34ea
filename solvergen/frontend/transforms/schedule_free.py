"""Schedule-free learning: steps are taken from z, gradients at y between z and the average x of all z.

Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky: The Road Less Scheduled (2024), arXiv 2405.15682, in the
authors' form that keeps y and z; updates weigh as the square of the largest learning rate so far.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.transforms.rule import Illegal, Rule, Step, add, call, div, mul, name, number, sub
from solvergen.ir.nodes import Binary, Compare
from solvergen.spec.made import text_of
from solvergen.spec.model import Hyperparameter, State

SUMMARY = "steps are taken from z, gradients at a point between z and the average of all z"


def apply(rule: Rule) -> Rule:
    """Rules that end in ``param = param - U`` and have a learning rate ``lr``; param becomes y, z a state."""
    rule.evaluates_once()
    place, change = rule.step_of_param()
    if rule.hyperparameter("lr") is None:
        raise Illegal("the rule has no hyperparameter 'lr', by which the average is weighted")
    rule = rule.with_hyperparameters(
        Hyperparameter(
            "averaging", 0.9, above=0.0, below=1.0, doc="share of the average in the point of the gradient"
        )
    ).with_state(
        State("z", text_of("param"), doc="the sequence that takes the steps"),
        State("lr_max", 0.0, shape="scalar", doc="largest learning rate so far"),
        State("weight_sum", 0.0, shape="scalar", doc="sum of the weights of the average"),
    )
    fresh = rule.fresh()
    taken, weight, share = fresh.take("proposed"), fresh.take("weight"), fresh.take("share")
    total, z, param = name("weight_sum"), name("z"), name("param")
    ahead = sub(mul(name("averaging"), sub(number(1), name(share))), number(1))
    made = (
        Step(taken, change),
        Step("lr_max", call("max", name("lr"), name("lr_max"))),
        Step(weight, Binary("**", name("lr_max"), number(2))),
        Step("weight_sum", add(total, name(weight))),
        Step(share, call("where", Compare(">", total, number(0)), div(name(weight), total), number(0))),
        Step("param", add(add(param, mul(name(share), sub(z, param))), mul(ahead, name(taken)))),
        Step("z", sub(z, name(taken))),
    )
    return replace(rule, steps=(*rule.steps[:place], *made, *rule.steps[place + 1 :]))
