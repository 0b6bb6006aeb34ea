"""What an expression of numbers comes to, in float64 by the language's rules: to the bit what the host
computes, so that decisions (is this exponent a whole number?) are the same on every machine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from solvergen.ir.library import BIT_FUNCTIONS, library
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
    Unary,
)

MAX_WHOLE = 2.0**53
"""Up to here every whole number is a double."""


def divide(a: float, b: float) -> float:
    """IEEE division: infinite or NaN where Python raises."""
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, math.copysign(1, a) * math.copysign(1, b))


def floor(x: float) -> float:
    """The largest whole number not above ``x``; infinities, NaN and -0.0 stay."""
    if not math.isfinite(x) or x == 0:
        return x
    whole = float(math.floor(x)) if abs(x) < MAX_WHOLE else x
    return math.copysign(whole, x) if whole == 0 else whole


def integer_power(base: float, exponent: float) -> float:
    """Binary powering by a whole exponent, the sequence of products that the language defines."""
    n = int(abs(exponent))
    if n == 0:
        return 1.0
    result: float | None = None
    while n:
        if n & 1:
            result = base if result is None else result * base
        n >>= 1
        if n:
            base = base * base
    assert result is not None
    return divide(1.0, result) if exponent < 0 else result


def _defined(name: str, arguments: list[float]) -> float:
    """A function that the language defines itself."""
    definition = library()[name]
    values = dict(zip(definition.parameters, arguments, strict=True))
    for local, body in definition.body:
        value = evaluate(body, values)
        assert value is not None
        values[local] = value
    return values[definition.result]


def _bits(name: str, x: float) -> float:
    """What looks at a double's bits; of what has none of the kind, anything, as nobody looks at it."""
    if not math.isfinite(x):
        return math.nan
    if name == "power_of_two":
        return math.ldexp(1.0, int(x)) if abs(x) < 1024 else math.nan
    significand, exponent = math.frexp(abs(x))
    return float(exponent - 1) if name == "exponent" else 2 * significand


def _function(name: str, a: list[float]) -> float:
    x = a[0]
    if name == "sqrt":
        return math.sqrt(x) if x >= 0 else (x if x == 0 or x != x else math.nan)
    if name == "abs":
        return math.fabs(x)
    if name == "sign":
        return 1.0 if x > 0 else (-1.0 if x < 0 else x)
    if name == "floor":
        return floor(x)
    if name == "max":
        return x if x > a[1] or x != x else a[1]
    if name == "min":
        return x if x < a[1] or x != x else a[1]
    if name == "clip":
        return _function("min", [_function("max", [x, a[1]]), a[2]])
    if name == "where":
        return a[1] if x else a[2]
    if name == "ipow" and math.isfinite(a[1]):
        return integer_power(x, a[1])
    if name in BIT_FUNCTIONS:
        return _bits(name, x)
    if name in ("exp", "log", "tanh", "cbrt", "pow", "ipow"):
        return _defined("pow" if name == "ipow" else name, a)
    raise AssertionError(name)


def evaluate(expression: Expression, values: Mapping[str, float]) -> float | None:
    """``expression`` with these values of its names, a condition as 1.0 or 0.0; None if a name has none."""
    if isinstance(expression, Number):
        return expression.value
    if isinstance(expression, Name):
        return values.get(expression.name)
    if isinstance(expression, (Reduce, GradientAt, Extent)):
        return None
    operands = []
    for operand in expression.operands:
        value = evaluate(operand, values)
        if value is None:
            return None
        operands.append(value)
    return combine(expression, operands)


def constant(expression: Expression) -> float | None:
    """The value of an expression without names; None if it has any."""
    return evaluate(expression, {})


def combine(node: Expression, a: list[float]) -> float:
    """``node`` applied to the values of its operands."""
    if isinstance(node, Round):
        return a[0]
    if isinstance(node, Call):
        return _function(node.function, a)
    if isinstance(node, Unary):
        return -a[0] if node.op == "-" else float(not a[0])
    assert isinstance(node, (Binary, Compare, Logic))
    x, y = a
    if isinstance(node, Logic):
        return float(bool(x and y) if node.op == "and" else bool(x or y))
    if isinstance(node, Compare):
        outcomes = {"<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "==": x == y, "!=": x != y}
        return float(outcomes[node.op])
    if node.op == "+":
        return x + y
    if node.op == "-":
        return x - y
    if node.op == "*":
        return x * y
    if node.op == "/":
        return divide(x, y)
    if node.op == "//":
        return floor(divide(x, y))
    if node.op == "%":
        return x - floor(divide(x, y)) * y
    whole = math.isfinite(y) and abs(y) <= MAX_WHOLE and y == math.floor(y)
    return _function("ipow" if whole else "pow", a)
