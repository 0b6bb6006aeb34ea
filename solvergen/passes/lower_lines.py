"""Reductions that end at matrices, or begin with values of lines, in terms of sums and largest ones.

A matrix's total is that of its rows' totals; a root is taken, and a sum divided, last. What is then reduced
of values of lines is their sum, or the largest of them, as they are.
"""

from __future__ import annotations

from dataclasses import replace

from solvergen.ir.nodes import Binary, Call, Compare, Expression, Extent, Number, Reduce
from solvergen.ir.program import Program
from solvergen.ir.types import SCALAR_INT, SCALAR_REAL, Kind, Rank, Type
from solvergen.passes.rewrite import rebuild


def lower_lines(program: Program) -> Program:
    """Rewrite reductions of values of lines, and of elements to matrices."""
    if not program.view:
        return program
    statements = tuple(replace(s, value=rebuild(s.value, _lowered)) for s in program.statements)
    return replace(program, statements=statements)


def _lowered(e: Expression) -> Expression:
    if not isinstance(e, Reduce):
        return e
    assert e.args[0].type is not None
    source = e.args[0].type.rank
    if source is Rank.ELEMENT:
        return _of_matrix(e) if e.along == Rank.MATRICES.value else e
    return _of_lines(e, source)


def _of_matrix(e: Reduce) -> Expression:
    """A reduction of the elements of each matrix: of each row, and then of the rows."""
    kind, args = e.kind, e.args
    if kind == "norm2":
        kind, args = "dot", args * 2
    elif kind == "mean":
        kind = "sum"
    by_row = Type(Kind.REAL, Rank.ROWS)
    rows = replace(e, kind=kind, args=args, along=Rank.ROWS.value, type=by_row)
    outer = "max_abs" if kind == "max_abs" else "sum"
    return _finished(e, replace(e, kind=outer, args=(rows,)), "matrix")


_COUNTS = {
    (Rank.ROWS, ""): "rows",
    (Rank.COLUMNS, ""): "columns",
    (Rank.MATRICES, ""): "matrices",
    (Rank.ROWS, "matrices"): "column",
    (Rank.COLUMNS, "matrices"): "row",
}
"""How many lines of a rank there are in the tensor, and in a matrix: a column has an element of each row."""


def _of_lines(e: Reduce, source: Rank) -> Expression:
    """A reduction of values of lines: of the terms that it adds, or takes the largest of."""
    x = e.args[0]
    real = Type(Kind.REAL, source)
    if e.kind == "dot" or e.kind == "norm2":
        term: Expression = Binary("*", x, e.args[-1], type=real, location=e.location)
    elif e.kind in ("norm1", "max_abs"):
        term = Call("abs", (x,), type=real, location=e.location)
    elif e.kind == "count_nonzero":
        zero = Number(0.0, True, type=SCALAR_REAL)
        differs = Compare("!=", x, zero, type=Type(Kind.BOOL, source), location=e.location)
        one, none = (Number(value, True, type=SCALAR_REAL) for value in (1.0, 0.0))
        term = Call("where", (differs, one, none), type=real, location=e.location)
    else:
        term = x
    kind = "max_abs" if e.kind == "max_abs" else "sum"
    return _finished(e, replace(e, kind=kind, args=(term,)), _COUNTS[source, e.along])


def _finished(e: Reduce, total: Expression, count: str) -> Expression:
    if e.kind == "norm2":
        return Call("sqrt", (total,), type=e.type, location=e.location)
    if e.kind == "mean":
        return Binary("/", total, Extent(count, type=SCALAR_INT), type=e.type, location=e.location)
    return total
