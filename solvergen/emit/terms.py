"""Reductions as C: the term that an element adds, and how a total becomes the reduction's value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from solvergen.emit.body import macro_condition
from solvergen.ir.reductions import EXTENTS, REDUCTIONS
from solvergen.ir.schedule import Reduction
from solvergen.ir.types import Rank

_TERMS = {
    "sum": "(double){0}",
    "mean": "(double){0}",
    "dot": "(double){0} * (double){1}",
    "norm2": "(double){0} * (double){0}",
    "norm1": "sg_abs64((double){0})",
    "max_abs": "sg_abs64((double){0})",
    "count_nonzero": "(double)({0} != (sg_real)0.0 ? (sg_real)1.0 : (sg_real)0.0)",
}
TOTALS = {
    Rank.SCALAR: "sg_totals[{}]",
    Rank.MATRICES: "sg_matrix_total_{}",
    Rank.ROWS: "sg_row_total_{}",
    Rank.COLUMNS: "sg_column_total_{}",
}
"""What a stage calls totals, by what they are of: an element of a table, or what it has read of lines."""

_SIZES = {
    Rank.SCALAR: "sg_size",
    Rank.MATRICES: f"(double){EXTENTS['matrix']}",
    Rank.ROWS: f"(double){EXTENTS['row']}",
    Rank.COLUMNS: f"(double){EXTENTS['column']}",
}
_FINISHED = {"mean": "{total} / {size}", "norm2": "sg_sqrt64({total})"}


@dataclass(frozen=True, slots=True)
class ReductionContext:
    """A reduction of a pass. ``column`` is its place among those of the pass.

    ``term`` is what an element contributes, in double; ``larger``: the larger of two terms is kept, else
    they are added. ``kind`` and ``operands`` say the same for targets that form terms in functions of
    their own: the reduction's name in the language, and the elements that it is of. ``terms_of``: the place
    of the reduction of rows that has the same terms, of reductions of columns for which there is one.
    """

    column: int
    name: str
    guard: str | None
    term: str
    larger: bool
    kind: str
    operands: tuple[str, ...]
    terms_of: int | None = None

    @property
    def way(self) -> str:
        """How two terms are combined, as functions of the kernels' libraries are called."""
        return "larger" if self.larger else "sum"

    @property
    def type(self) -> str:
        """What terms are kept in: sums need float64, the larger of two terms is one of them."""
        return "sg_real" if self.larger else "double"

    @property
    def terms(self) -> str:
        """What a column's terms are called: those of the row, where there are the same."""
        return f"sg_column_{self.column}" if self.terms_of is None else f"sg_row_{self.terms_of}"

    def combined(self, first: str, second: str) -> str:
        """The term that is kept of two, in the terms' type."""
        return f"sg_larger_real({first}, {second})" if self.larger else f"{first} + {second}"


@dataclass(frozen=True, slots=True)
class TermContext:
    """A term that a pass over tiles forms of each element: ``text``, kept in the buffer ``name``."""

    name: str
    guard: str | None
    type: str
    text: str


def reduction_contexts(
    reductions: Sequence[Reduction], names: Mapping[str, str]
) -> tuple[ReductionContext, ...]:
    """What a pass forms, in the order of its columns."""
    return tuple(
        ReductionContext(
            column=column,
            name=reduction.name,
            guard=macro_condition(reduction.guard),
            term=_TERMS[reduction.kind].format(*(names[arg.name] for arg in reduction.args)),
            larger=REDUCTIONS[reduction.kind].largest,
            kind=reduction.kind,
            operands=tuple(names[arg.name] for arg in reduction.args),
        )
        for column, reduction in enumerate(reductions)
    )


def sharing_terms(
    columns: Sequence[ReductionContext], rows: Sequence[ReductionContext]
) -> tuple[ReductionContext, ...]:
    """Reductions of columns that say which reductions of rows, of the same pass, have their terms and combine
    them alike."""
    formed = {(row.term, row.guard, row.larger): row.column for row in rows}
    return tuple(
        replace(column, terms_of=formed.get((column.term, column.guard, column.larger))) for column in columns
    )


def formed_terms(
    rows: Sequence[ReductionContext], columns: Sequence[ReductionContext]
) -> tuple[TermContext, ...]:
    """The terms of rows, and of those columns whose terms aren't a row's too."""
    named = [(f"sg_row_{row.column}", row) for row in rows]
    named += [(column.terms, column) for column in columns if column.terms_of is None]
    return tuple(TermContext(name, one.guard, one.type, one.term) for name, one in named)


def finished(reduction: Reduction, column: int) -> str:
    """The value of a complete reduction, from its total in ``column`` of all reductions."""
    total = f"sg_over_all[{column}]" if reduction.over_all else TOTALS[reduction.along].format(column)
    size = "sg_total_size" if reduction.over_all else _SIZES[reduction.along]
    return _FINISHED.get(reduction.kind, "{total}").format(total=total, size=size)
