"""What values a scalar expression can take, given the ranges of the hyperparameters.

Interval arithmetic in float64: each operation is monotone and correctly rounded, so the ends of the
result are the results at ends. Used to find conditions that can't hold, or can't fail; where little is
known the answer is "anything", never a wrong claim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from solvergen.ir.evaluate import divide, floor
from solvergen.ir.nodes import Binary, Call, Compare, Expression, Logic, Name, Number, Unary

if TYPE_CHECKING:
    from solvergen.spec.model import Hyperparameter

_LARGEST = math.nextafter(math.inf, 0)


@dataclass(frozen=True)
class Range:
    """Values from ``low`` to ``high``, both included, and perhaps NaN."""

    low: float
    high: float
    nan: bool = False


ANYTHING = Range(-math.inf, math.inf, nan=True)


def range_of_hyperparameter(h: Hyperparameter) -> Range:
    """The finite doubles that the range of ``h`` allows."""
    low = -_LARGEST if h.min is None else h.min
    if h.above is not None:
        low = max(low, math.nextafter(h.above, math.inf))
    high = _LARGEST if h.max is None else h.max
    if h.below is not None:
        high = min(high, math.nextafter(h.below, -math.inf))
    if h.integer:
        low, high = -floor(-low), floor(high)
    return Range(low, high)


def value_range(node: Expression, known: Mapping[str, Range]) -> Range:
    """The values that ``node`` can take when names have those of ``known``."""
    if isinstance(node, Number):
        return Range(node.value, node.value)
    if isinstance(node, Name):
        return known.get(node.name, ANYTHING)
    if isinstance(node, Unary) and node.op == "-":
        a = value_range(node.operand, known)
        return Range(-a.high, -a.low, a.nan)
    if isinstance(node, Binary) and node.op in ("+", "-", "*", "/"):
        return _arithmetic(node.op, value_range(node.left, known), value_range(node.right, known))
    if isinstance(node, Call):
        return _call(node, known)
    return ANYTHING


def _arithmetic(op: str, a: Range, b: Range) -> Range:
    if op == "/" and b.low <= 0 <= b.high:
        return ANYTHING
    if op in ("+", "-"):
        # An end that comes to inf - inf is NaN and makes the result "anything".
        ends = [a.low + b.low, a.high + b.high] if op == "+" else [a.low - b.high, a.high - b.low]
        infinite = math.inf in (a.high, b.high) or -math.inf in (a.low, b.low)
        if infinite:
            return ANYTHING
    elif op == "*":
        ends = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
    else:
        ends = [divide(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    if any(x != x for x in ends) or math.inf in (a.high, b.high) or -math.inf in (a.low, b.low):
        return ANYTHING
    return Range(min(ends), max(ends), a.nan or b.nan)


def _call(node: Call, known: Mapping[str, Range]) -> Range:
    if node.function == "where":
        outcome = truth(node.args[0], known)
        first, second = value_range(node.args[1], known), value_range(node.args[2], known)
        if outcome is not None:
            return first if outcome else second
        return Range(min(first.low, second.low), max(first.high, second.high), first.nan or second.nan)
    args = [value_range(arg, known) for arg in node.args]
    a = args[0]
    if node.function == "abs":
        low = 0.0 if a.low <= 0 <= a.high else min(abs(a.low), abs(a.high))
        return Range(low, max(abs(a.low), abs(a.high)), a.nan)
    if node.function == "sqrt" and a.low >= 0:
        return Range(math.sqrt(a.low), math.sqrt(a.high), a.nan)
    if node.function == "floor":
        return Range(floor(a.low), floor(a.high), a.nan)
    if node.function == "sign":
        return Range(_sign(a.low), _sign(a.high), a.nan)
    if node.function in ("min", "max") and not any(x.nan for x in args):
        pick = min if node.function == "min" else max
        return Range(pick(x.low for x in args), pick(x.high for x in args))
    if node.function == "tanh":
        return Range(-1.0, 1.0, a.nan)
    if node.function == "exp":
        return Range(0.0, math.inf, a.nan)
    if node.function == "cbrt":  # its sign only: the ends are not known to the last bit
        return Range(0.0 if a.low >= 0 else -math.inf, 0.0 if a.high <= 0 else math.inf, a.nan)
    return ANYTHING


def _sign(x: float) -> float:
    return 1.0 if x > 0 else -1.0 if x < 0 else 0.0


def truth(node: Expression, known: Mapping[str, Range]) -> bool | None:
    """Whether the condition ``node`` always holds (True), never holds (False), or may do either (None)."""
    if isinstance(node, Unary) and node.op == "not":
        inner = truth(node.operand, known)
        return None if inner is None else not inner
    if isinstance(node, Logic):
        a, b = truth(node.left, known), truth(node.right, known)
        decisive = node.op == "or"  # one True decides an `or`, one False an `and`
        if a is decisive or b is decisive:
            return decisive
        return None if a is None or b is None else not decisive
    if isinstance(node, Compare):
        return _compare(node.op, value_range(node.left, known), value_range(node.right, known))
    return None


def _compare(op: str, a: Range, b: Range) -> bool | None:
    nan = a.nan or b.nan
    if op in (">", ">="):
        return _compare("<" if op == ">" else "<=", b, a)
    if op in ("==", "!="):
        apart = a.high < b.low or b.high < a.low
        if apart:
            return op == "!="  # NaN is unequal to everything too
        same = a.low == a.high == b.low == b.high
        return (op == "==") if same and not nan else None
    if op == "<":
        holds, fails = a.high < b.low, a.low >= b.high
    else:
        holds, fails = a.high <= b.low, a.low > b.high
    if fails:
        return False  # and with NaN it doesn't hold either
    return True if holds and not nan else None
