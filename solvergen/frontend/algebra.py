"""Expressions in SymPy's own terms, over the real numbers: for proofs and derivatives, and for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy

from solvergen.errors import NotExpressible
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    GradientAt,
    Logic,
    Name,
    Number,
    Reduce,
    Round,
    Stored,
    Unary,
)
from solvergen.ir.reductions import ALL

RELATIONS: dict[str, Any] = {
    "<": sympy.StrictLessThan,
    "<=": sympy.LessThan,
    ">": sympy.StrictGreaterThan,
    ">=": sympy.GreaterThan,
    "==": sympy.Equality,
    "!=": sympy.Unequality,
}
"""SymPy's relations by the language's operators."""


def algebra(expression: Expression, symbols: Mapping[str, Any] | None = None) -> Any:
    """``expression`` in SymPy's own terms, for proofs and derivatives over the reals.

    Literals become the exact rationals that their doubles are. ``symbols`` gives the SymPy symbol (with
    assumptions, say) of a name; by default each is a plain ``Symbol`` of that name.

    Raises NotExpressible for powers of numbers that SymPy would compute exactly and that are too long for it.
    """
    known = dict(symbols or {})

    def visit(node: Expression) -> Any:
        if isinstance(node, Number):
            return sympy.Rational(*node.value.as_integer_ratio())
        if isinstance(node, Name):
            return known.get(node.name, sympy.Symbol(node.name))
        if isinstance(node, Extent):
            return sympy.Symbol(node.of, positive=True)
        a = [visit(operand) for operand in node.operands]
        if isinstance(node, (Round, Stored)):
            return a[0]
        if isinstance(node, Unary):
            return sympy.Not(a[0]) if node.op == "not" else -a[0]
        if isinstance(node, Compare):
            return RELATIONS[node.op](*a)
        if isinstance(node, Logic):
            return sympy.And(*a) if node.op == "and" else sympy.Or(*a)
        if isinstance(node, GradientAt):
            return sympy.Function("gradient", real=True)(*a)
        if isinstance(node, Reduce):
            # A number of which nothing but its sign is known.
            kind = sympy.Function(node.kind, real=True, nonnegative=node.kind in _NOT_NEGATIVE or None)
            over = ALL if node.over_all else node.along
            return kind(*a, *([sympy.Symbol(over)] if over else []))
        if isinstance(node, Call):
            return _ALGEBRA_FUNCTIONS[node.function](*a)
        assert isinstance(node, Binary)
        return _ALGEBRA_OPERATORS[node.op](*a)

    return visit(expression)


_MAX_BITS = 100_000
"""Of the numbers in an exact power: 0.9**1000000000 would fill the memory."""

_MAX_ROOT = 64
"""Roots of numbers up to here are SymPy's own."""


POWER: Any = sympy.Function("pow", positive=True)
"""A power of a positive number that SymPy is kept from taking apart."""


def _power(base: Any, exponent: Any) -> Any:
    if not exponent.is_Rational:
        return base**exponent
    bits = sum(max(int(n.p).bit_length(), int(n.q).bit_length()) - 1 for n in base.atoms(sympy.Rational))
    if bits * abs(exponent) > _MAX_BITS:
        raise NotExpressible("a power of numbers that SymPy would compute exactly, and that is too long")
    if exponent.q <= _MAX_ROOT:
        return base**exponent
    if isinstance(base, sympy.Piecewise):
        return sympy.Piecewise(*[(_power(value, exponent), condition) for value, condition in base.args])
    # Of 12**0.9, where 0.9 is a fraction over 2**53, SymPy would try 3**(2**53).
    coefficient, rest = base.as_coeff_Mul()
    if not coefficient.is_Rational or abs(coefficient) in (0, 1):
        return base**exponent
    size = abs(coefficient)
    return POWER(size, exponent) * (rest * (coefficient / size)) ** exponent


def _floor(x: Any) -> Any:
    # SymPy would look for whole parts to take out: of a number that is no fraction by more and more digits,
    # of a sum to a high power by multiplying it out, and nested ones take two to the power of their depth.
    return sympy.floor(x, evaluate=bool(x.is_Rational))


def _remainder(a: Any, b: Any) -> Any:
    # Written out, each operand stands twice: nested ones stay SymPy's own.
    if (a + b).has(sympy.floor, sympy.Mod):
        return sympy.Mod(a, b, evaluate=False)
    return a - _floor(a / b) * b


class _Tanh(sympy.tanh):  # type: ignore[misc]
    """SymPy's, which doesn't multiply out its argument's powers to tell what kind of number it is."""

    def _eval_is_real(self) -> bool | None:
        return True if self.args[0].is_extended_real else None

    _eval_is_finite = _eval_is_extended_real = _eval_is_real


_Tanh.__name__ = "tanh"  # by which SymPy prints it


def _tanh(x: Any) -> Any:
    return _Tanh(x, evaluate=not x.has(sympy.tanh))


_NOT_NEGATIVE = ("norm2", "norm1", "max_abs", "count_nonzero")

_ALGEBRA_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: _floor(a / b),
    "%": _remainder,
    "**": _power,
}
_ALGEBRA_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": sympy.sqrt,
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "min": sympy.Min,
    "max": sympy.Max,
    "exp": sympy.exp,
    "log": sympy.log,
    "tanh": _tanh,
    "cbrt": lambda x: sympy.sign(x) * sympy.cbrt(sympy.Abs(x)),  # SymPy's own of a negative number is complex
    "floor": _floor,
    "where": lambda c, a, b: sympy.Piecewise((a, c), (b, True)),
    "clip": lambda x, low, high: sympy.Min(sympy.Max(x, low), high),
    "pow": _power,
    "ipow": _power,
}
