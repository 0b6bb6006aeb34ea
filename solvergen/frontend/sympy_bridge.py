"""Between the IR and SymPy, for what SymPy is good at: proofs, derivatives, exact rationals.

Two forms. ``to_sympy`` is the expression *as written*: nothing is sorted, flattened or folded, and
``from_sympy(..., as_written=True)`` gives the same IR back. ``algebra`` is what SymPy makes of it, over the
real numbers: what can be proved of it holds in exact arithmetic and says nothing of bits, NaN or -0.0.

Names become symbols by their names and never pass through ``sympify`` or ``parse_expr``, which evaluate
text. What SymPy derives comes back as text of the language, through the parser, and is then as written.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from solvergen.errors import NotExpressible
from solvergen.frontend.algebra import POWER, RELATIONS, algebra
from solvergen.frontend.parse import parse_condition
from solvergen.ir.functions import FUNCTIONS
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
from solvergen.ir.program import Program
from solvergen.ir.reductions import ALL, LINES, NDIM, REDUCTIONS
from solvergen.ir.text import expression_text
from solvergen.spec.model import Text
from solvergen.spec.names import NAME_PATTERN

__all__ = ["algebra", "from_sympy", "language_text", "program_sympy", "to_sympy"]

_RELATION_TEXTS = {relation: op for op, relation in RELATIONS.items()}

_AS_WRITTEN = ("-", "/", "//", "%", "and", "or", "not", "neg", *FUNCTIONS, *REDUCTIONS, NDIM)
"""What SymPy's own classes would reorder or rewrite: held as functions that it knows nothing of."""

_UNKNOWN: dict[str, Any] = {name: sympy.Function(name) for name in _AS_WRITTEN}


def to_sympy(expression: Expression) -> Any:
    """``expression`` as written, as a SymPy tree that loses nothing.

    Sums, products, powers, comparisons and numbers are SymPy's own, unevaluated. The rest, for which
    SymPy has no faithful class (``Max`` forgets the order of its arguments, ``a - b`` is ``a + (-1)*b``),
    are undefined functions of these names: ``-``, ``/``, ``neg``, ``and``, ``where``, ``max`` ...
    """
    if isinstance(expression, Number):
        return _number(expression)
    if isinstance(expression, Name):
        return sympy.Symbol(expression.name)
    operands = [to_sympy(operand) for operand in expression.operands]
    if isinstance(expression, (Round, Stored)):
        return operands[0]
    if isinstance(expression, Unary):
        return _UNKNOWN["not" if expression.op == "not" else "neg"](*operands)
    if isinstance(expression, Compare):
        return RELATIONS[expression.op](*operands, evaluate=False)
    if isinstance(expression, GradientAt):
        raise NotExpressible("an evaluation of the gradient is no expression")
    if isinstance(expression, Reduce):
        over = ALL if expression.over_all else expression.along
        return _UNKNOWN[expression.kind](*operands, *([sympy.Symbol(over)] if over else []))
    if isinstance(expression, Extent):
        return _UNKNOWN[NDIM](sympy.Symbol("param"))
    if isinstance(expression, Call):
        if expression.function in ("pow", "ipow"):
            return sympy.Pow(*operands, evaluate=False)
        return _UNKNOWN[expression.function](*operands)
    assert isinstance(expression, (Binary, Logic))
    constructor = {"+": sympy.Add, "*": sympy.Mul, "**": sympy.Pow}.get(expression.op)
    if constructor is not None:
        return constructor(*operands, evaluate=False)
    return _UNKNOWN[expression.op](*operands)


def _number(number: Number) -> Any:
    if math.copysign(1, number.value) < 0 and number.value == 0:
        return _UNKNOWN["neg"](_number(Number(0.0)))  # SymPy's zeros have no sign
    if number.integral:
        return sympy.Integer(int(number.value))
    return sympy.Float(number.value)


_ONE_ARGUMENT: dict[str, Any] = {
    "abs": sympy.Abs,
    "sign": sympy.sign,
    "exp": sympy.exp,
    "log": sympy.log,
    "tanh": sympy.tanh,
    "floor": sympy.floor,
}


def from_sympy(expression: Any, *, as_written: bool = False) -> Expression:
    """IR of a SymPy expression, by way of text and the parser. Raises NotExpressible.

    ``as_written``: it came from ``to_sympy``, and is taken literally; else ``a + (-1)*b`` is read as a
    difference and ``a*b**-1`` as a quotient.
    """
    return parse_condition(Text.of(language_text(expression, as_written=as_written), "<sympy>"))


def language_text(expression: Any, *, as_written: bool = False) -> str:
    """A SymPy expression as text of the language. Raises NotExpressible."""
    return expression_text(_Reader(as_written).read(expression))


class _Reader:
    def __init__(self, as_written: bool) -> None:
        self.as_written = as_written

    def read(self, e: Any) -> Expression:
        if isinstance(e, sympy.Symbol):
            if isinstance(e, sympy.Dummy) or not re.fullmatch(NAME_PATTERN, e.name, re.ASCII):
                raise NotExpressible(f"{e!r} is no name of the language")
            return Name(e.name)
        if isinstance(e, (sympy.Number, sympy.NumberSymbol)):
            return self.number(e)
        if isinstance(e, POWER):
            return Binary("**", *[self.read(a) for a in e.args])
        if isinstance(e, AppliedUndef) and e.func.__name__ in _UNKNOWN:
            return self.unknown(e.func.__name__, [self.read(a) for a in e.args])
        if isinstance(e, (sympy.Add, sympy.Mul)) and not self.as_written:
            return self.sum(e) if isinstance(e, sympy.Add) else self.product(e)
        if isinstance(e, (sympy.Add, sympy.Mul)):
            op = "+" if isinstance(e, sympy.Add) else "*"
            return self.chain(lambda a, b: Binary(op, a, b), [self.read(a) for a in e.args])
        if isinstance(e, sympy.Pow):
            return self.power(e)
        if type(e) in _RELATION_TEXTS:
            return Compare(_RELATION_TEXTS[type(e)], self.read(e.lhs), self.read(e.rhs))
        return self.other(e)

    def unknown(self, name: str, a: list[Expression]) -> Expression:
        if name in REDUCTIONS:
            last = a[-1].name if isinstance(a[-1], Name) else ""
            along = last if last in LINES else ""
            return Reduce(name, tuple(a[:-1] if last == ALL or along else a), last == ALL, along)
        if name == NDIM:
            return Extent(NDIM)
        if name in ("neg", "not"):
            if name == "neg" and isinstance(a[0], Number):
                return _negative(a[0])
            return Unary("-" if name == "neg" else "not", a[0])
        if name in ("and", "or"):
            return Logic(name, *a)
        if name in FUNCTIONS:
            return Call(name, tuple(a))
        return Binary(name, *a)

    def number(self, e: Any) -> Expression:
        if not e.is_finite:
            raise NotExpressible(f"{e} is no number of the language")
        if isinstance(e, sympy.Integer):
            return _whole(int(e))
        if isinstance(e, sympy.Rational):
            value = float(e)
            if math.isfinite(value) and sympy.Rational(*value.as_integer_ratio()) == e:
                return Number(value)
            return Binary("/", _whole(int(e.p)), _whole(int(e.q)))
        value = float(e)
        if not math.isfinite(value):
            raise NotExpressible(f"{e} is too large for a double")
        return Number(value)

    def sum(self, e: Any) -> Expression:
        result: Expression | None = None
        for term in e.args:
            negative, positive = _sign_apart(term)
            part = self.read(positive)
            if result is None:
                result = _negative(part) if negative else part
            else:
                result = Binary("-" if negative else "+", result, part)
        assert result is not None
        return result

    def product(self, e: Any) -> Expression:
        negative, positive = _sign_apart(e)
        if negative:
            return _negative(self.read(positive))
        over, under = [], []
        for factor in e.args:
            base, exponent = factor.as_base_exp() if isinstance(factor, sympy.Pow) else (factor, sympy.S.One)
            if exponent.is_Rational and exponent < 0:
                under.append(sympy.Pow(base, -exponent))
            elif isinstance(factor, sympy.Rational) and factor.q != 1:
                over += [sympy.Integer(factor.p)] if factor.p != 1 else []
                under.append(sympy.Integer(factor.q))
            else:
                over.append(factor)
        times: Callable[[Expression, Expression], Expression] = lambda a, b: Binary("*", a, b)  # noqa: E731
        above = self.chain(times, [self.read(f) for f in over]) if over else Number(1.0, True)
        if not under:
            return above
        return Binary("/", above, self.chain(times, [self.read(f) for f in under]))

    def power(self, e: Any) -> Expression:
        base, exponent = e.args
        if not self.as_written:
            if exponent == sympy.Rational(1, 2):
                return Call("sqrt", (self.read(base),))
            if exponent == sympy.Rational(1, 3) and base.is_extended_nonnegative:
                return Call("cbrt", (self.read(base),))
            if exponent.is_Rational and exponent < 0:
                return Binary("/", Number(1.0, True), self.read(sympy.Pow(base, -exponent)))
        return Binary("**", self.read(base), self.read(exponent))

    def chain(
        self, combine: Callable[[Expression, Expression], Expression], parts: list[Expression]
    ) -> Expression:
        result = parts[0]
        for part in parts[1:]:
            result = combine(result, part)
        return result

    def other(self, e: Any) -> Expression:
        """Functions and conditions that evaluated expressions have."""
        if isinstance(e, sympy.Piecewise):
            return self.piecewise(e)
        if isinstance(e, sympy.Not):
            return Unary("not", self.read(e.args[0]))
        if isinstance(e, (sympy.And, sympy.Or)):
            op = "and" if isinstance(e, sympy.And) else "or"
            return self.chain(lambda a, b: Logic(op, a, b), [self.read(a) for a in e.args])
        if isinstance(e, (sympy.Max, sympy.Min)):
            name = "max" if isinstance(e, sympy.Max) else "min"
            # Max and Min keep a set: an order of our own makes the text the same from run to run.
            parts = sorted((self.read(a) for a in e.args), key=expression_text)
            return self.chain(lambda a, b: Call(name, (a, b)), parts)
        if isinstance(e, sympy.Mod):
            return Binary("%", self.read(e.args[0]), self.read(e.args[1]))
        if isinstance(e, sympy.ceiling):
            return _negative(Call("floor", (self.read(-e.args[0]),)))
        for name, function in _ONE_ARGUMENT.items():
            if isinstance(e, function) and len(e.args) == 1:
                return Call(name, (self.read(e.args[0]),))
        raise NotExpressible(f"the language has no {type(e).__name__}: {e}")

    def piecewise(self, e: Any) -> Expression:
        *cases, (last, condition) = e.args
        if condition != sympy.true:
            raise NotExpressible(f"nothing is said of the remaining cases: {e}")
        result = self.read(last)
        for value, when in reversed(cases):
            result = Call("where", (self.read(when), self.read(value), result))
        return result


def _whole(value: int) -> Expression:
    try:
        return Number(float(value), True)
    except OverflowError:
        raise NotExpressible(f"{value} is too large for a double") from None


def _negative(e: Expression) -> Expression:
    if isinstance(e, Number):
        return Number(-e.value, e.integral and e.value != 0)
    return Unary("-", e)


def _sign_apart(term: Any) -> tuple[bool, Any]:
    """Whether ``term`` has a negative coefficient, and the term without its sign."""
    coefficient, rest = term.as_coeff_Mul()
    if coefficient.is_extended_negative:
        return True, -coefficient if rest == 1 else sympy.Mul(-coefficient, rest)
    return False, term


def _printed(expression: Any) -> str:
    """SymPy's own text. Raises NotExpressible where a number has more digits than Python prints."""
    limit = sys.get_int_max_str_digits() if hasattr(sys, "get_int_max_str_digits") else 0
    longest = max((max(abs(n.p), n.q) for n in expression.atoms(sympy.Rational)), default=0)
    if limit and int(longest).bit_length() * math.log10(2) >= limit:
        raise NotExpressible(f"a number of more than {limit} digits")
    return str(sympy.sstr(expression, order="none"))


def program_sympy(program: Program) -> str:
    """Each equation of ``program`` as SymPy sees it, for people. Ends with a newline."""
    lines = ["# over the reals; what is computed are the equations as written, in their order"]
    for statement in program.statements:
        try:
            line = f"{statement.target} = {_printed(algebra(statement.value))}"
        except NotExpressible as reason:
            lines.append(f"# {statement.source}: not shown ({reason})")
            continue
        if not statement.guard.is_always:
            line += f"  # when {statement.guard.text()}"
        lines.append(line)
    return "\n".join(lines) + "\n"
