"""Lookahead: every k updates, slow weights go a share of the way to the fast ones, which begin there again.

Zhang, Lucas, Hinton, Ba: Lookahead Optimizer: k steps forward, 1 step back (2019), arXiv 1907.08610,
algorithm 1.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.frontend.transforms.rule import Rule, Step, add, call, mul, name, number, sub
from solvergen.ir.nodes import Binary, Compare
from solvergen.spec.made import text_of
from solvergen.spec.model import Hyperparameter, State

SUMMARY = (
    "every k updates, slow weights go the share alpha of the way to the fast ones, which begin there again"
)


def apply(rule: Rule) -> Rule:
    """Any rule: the parameter is the fast weight; the slow ones are the state ``slow``."""
    rule = rule.with_hyperparameters(
        Hyperparameter("k", 5.0, min=1.0, integer=True, doc="updates for each of the slow weights"),
        Hyperparameter(
            "alpha", 0.5, min=0.0, max=1.0, doc="share of the way to the fast weights that the slow ones go"
        ),
    ).with_state(State("slow", text_of("param"), output=True, doc="the slow weights"))
    param, slow = name("param"), name("slow")
    there = Compare("==", Binary("%", name("t"), name("k")), number(0))
    moved = add(slow, mul(name("alpha"), sub(param, slow)))
    steps = (
        Step("slow", call("where", there, moved, slow)),
        Step("param", call("where", there, slow, param)),
    )
    return replace(rule, steps=(*rule.steps, *steps))
