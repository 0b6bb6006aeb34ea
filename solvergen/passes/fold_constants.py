"""Arithmetic between constants, in float64 and in written order: what the host would compute.

A fold whose result isn't finite is left for run time, since no literal can say it.
"""

from __future__ import annotations

import math
from dataclasses import replace

from solvergen.ir.nodes import Binary, Call, Expression, Number, Unary
from solvergen.ir.program import Program
from solvergen.passes.rewrite import rebuild


def fold_constants(program: Program) -> Program:
    """Replace scalar operations on constants by their float64 result."""
    statements = tuple(replace(s, value=rebuild(s.value, _fold)) for s in program.statements)
    return replace(program, statements=statements)


def _fold(e: Expression) -> Expression:
    operands = e.operands
    if (
        not operands
        or not all(isinstance(o, Number) for o in operands)
        or e.type is None
        or e.type.is_element
    ):
        return e
    value = _value(e, [o.value for o in operands if isinstance(o, Number)])
    if value is None or not math.isfinite(value):
        return e
    return Number(value, value.is_integer(), type=e.type, location=e.location)


def _value(e: Expression, x: list[float]) -> float | None:
    match e:
        case Unary(op="-"):
            return -x[0]
        case Binary(op="+"):
            return x[0] + x[1]
        case Binary(op="-"):
            return x[0] - x[1]
        case Binary(op="*"):
            return x[0] * x[1]
        case Binary(op="/") if x[1] != 0:
            return x[0] / x[1]
        case Call(function="sqrt") if x[0] >= 0:
            return math.sqrt(x[0])
        case Call(function="floor"):
            return math.copysign(float(math.floor(x[0])), x[0])
        case Call(function="abs"):
            return abs(x[0])
        case Call(function="ipow"):
            return _power(x[0], int(x[1]))
    return None


def _power(base: float, n: int) -> float | None:
    """Binary powering, lowest bit first, as every backend does it."""
    if n < 0:
        positive = _power(base, -n)
        return 1.0 / positive if positive else None
    result = 1.0
    while n:
        if n & 1:
            result *= base
        n >>= 1
        if n:
            base *= base
    return result
