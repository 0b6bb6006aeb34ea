"""Hypothesis strategies for expressions of the language, as the parser would make them."""

from __future__ import annotations

from hypothesis import strategies as st

from solvergen.ir.functions import FUNCTIONS
from solvergen.ir.nodes import (
    ARITHMETIC,
    COMPARISONS,
    Binary,
    Call,
    Compare,
    Expression,
    Logic,
    Name,
    Number,
    Unary,
)

NAMES = ("param", "grad", "m", "beta1", "E", "lr", "t", "x0")

names = st.sampled_from(NAMES).map(Name)
whole_numbers = st.one_of(
    st.integers(-20, 20).map(float), st.integers(0, 2**70).map(float), st.just(1e300)
).map(lambda x: Number(x, integral=True))
real_numbers = st.floats(allow_nan=False, allow_infinity=False).map(Number)
leaves = st.one_of(names, whole_numbers, real_numbers)


def _negated(operand: Expression) -> Expression:
    # The parser takes a sign before a number into the number, and none before a condition.
    if isinstance(operand, (Compare, Logic)) or (isinstance(operand, Unary) and operand.op == "not"):
        return Unary("not", operand)
    if isinstance(operand, Number):
        return Number(-operand.value, operand.integral and operand.value != 0)
    return Unary("-", operand)


def _grown(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    """One more level, types left out of account: conditions and numbers mix."""
    call = st.sampled_from(sorted(FUNCTIONS.values(), key=lambda f: f.name)).flatmap(
        lambda f: st.tuples(*[inner] * f.arity).map(lambda args: Call(f.name, args))
    )
    return st.one_of(
        st.builds(Binary, st.sampled_from(ARITHMETIC), inner, inner),
        st.builds(Compare, st.sampled_from(COMPARISONS), inner, inner),
        st.builds(Logic, st.sampled_from(("and", "or")), inner, inner),
        inner.map(lambda e: Unary("not", e)),
        inner.map(_negated),
        call,
    )


expressions = st.recursive(leaves, _grown, max_leaves=25)
"""Anything that the grammar has, well typed or not."""


def _numeric_over(numbers: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    conditions = st.builds(Compare, st.sampled_from(COMPARISONS), numbers, numbers)
    either = st.one_of(
        conditions,
        conditions.map(lambda c: Unary("not", c)),
        st.builds(Logic, st.sampled_from(("and", "or")), conditions, conditions),
    )

    def call(name: str) -> st.SearchStrategy[Expression]:
        kinds = [either if p == "b" else numbers for p in FUNCTIONS[name].parameters]
        return st.tuples(*kinds).map(lambda args: Call(name, args))

    return st.one_of(
        st.builds(Binary, st.sampled_from(ARITHMETIC), numbers, numbers),
        numbers.map(_negated),
        st.sampled_from(sorted(FUNCTIONS)).flatmap(call),
    )


numeric = st.recursive(leaves, _numeric_over, max_leaves=15)
"""Well-typed numbers."""
