"""Arithmetic between constants, in float64 and in written order: what the host would compute.

A fold whose result isn't finite is left for run time, since no literal can say it; so are functions
of the library, whose bits only their own definition has.
"""

from __future__ import annotations

import math
from dataclasses import replace

from solvergen.ir.evaluate import constant
from solvergen.ir.library import library
from solvergen.ir.nodes import Call, Expression, Number
from solvergen.ir.program import Program
from solvergen.passes.rewrite import rebuild


def fold_constants(program: Program) -> Program:
    """Replace scalar operations on constants by their float64 result."""
    statements = tuple(replace(s, value=rebuild(s.value, _fold)) for s in program.statements)
    return replace(program, statements=statements)


def _fold(e: Expression) -> Expression:
    operands = e.operands
    if not operands or not all(isinstance(o, Number) for o in operands):
        return e
    if e.type is None or e.type.is_element or e.type.is_bool:
        return e
    if isinstance(e, Call) and e.function in library() and library()[e.function].wide:
        return e
    value = constant(e)
    if value is None or not math.isfinite(value):
        return e
    return Number(value, value.is_integer(), type=e.type, location=e.location)
