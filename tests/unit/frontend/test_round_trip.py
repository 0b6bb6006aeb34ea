"""IR printed as text reads back as the same IR; so does IR that went through SymPy as written."""

from __future__ import annotations

import math

from hypothesis import assume, given, settings

from solvergen.ir.nodes import Expression, Number, walk
from solvergen.ir.text import expression_text
from tests.unit.frontend.strategies import expressions, numeric
from tests.unit.frontend.support import value


def same(a: Expression, b: Expression) -> bool:
    """Equality that also tells -0.0 from 0.0."""
    zeros = [[math.copysign(1, node.value) for node in walk(e) if isinstance(node, Number)] for e in (a, b)]
    return a == b and zeros[0] == zeros[1]


def depth(e: Expression) -> int:
    return 1 + max((depth(operand) for operand in e.operands), default=0)


def signs_fit(text: str) -> bool:
    return "-" * 9 not in text.replace(" ", "") and "not " * 9 not in text


@settings(max_examples=400)
@given(expressions)
def test_text_reads_back(expression):
    text = expression_text(expression)
    assume(len(text) < 3000 and depth(expression) < 45 and signs_fit(text))
    assert same(value(text), expression)


@settings(max_examples=200)
@given(expressions)
def test_text_has_no_more_parentheses_than_it_needs(expression):
    text = expression_text(expression)
    assume(len(text) < 800 and depth(expression) < 45 and signs_fit(text))
    for start, end in _pairs(text):
        inner = text[:start] + " " + text[start + 1 : end] + " " + text[end + 1 :]
        if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
            continue  # a call's
        try:
            again = value(inner)
        except Exception:
            continue
        assert not same(again, expression), f"{text}: the parentheses at {start} are not needed"


def _pairs(text: str) -> list[tuple[int, int]]:
    pairs, open_at = [], []
    for i, character in enumerate(text):
        if character == "(":
            open_at.append(i)
        elif character == ")":
            pairs.append((open_at.pop(), i))
    return pairs


@settings(max_examples=200, deadline=None)
@given(numeric)
def test_sympy_as_written_reads_back(expression):
    from solvergen.frontend.sympy_bridge import from_sympy, to_sympy

    text = expression_text(expression)
    assume(len(text) < 3000 and depth(expression) < 45 and signs_fit(text))
    assert same(from_sympy(to_sympy(expression), as_written=True), expression)
