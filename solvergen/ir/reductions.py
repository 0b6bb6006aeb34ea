"""The reductions of the language: one literal table.

Each makes one float64 number of the elements of a tensor, or of all tensors of the optimizer, in the order
that the language defines (``docs/language.md``): a sum of terms in float64, or their largest.
"""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.ir.types import Rank

ALL = "all"
"""As a last argument: over all tensors of the optimizer that take part in the step."""

LINES = {
    "rows": "each row of each matrix",
    "columns": "each column of each matrix",
    "matrices": "each matrix: the last two axes",
    "leading": "each index of the first axis",
    "trailing": "each index of the last axis",
    "blocks": "each block that the user divides it into",
}
"""As a last argument: one value for each of these."""

VIEWS = {
    "rows": "matrices",
    "columns": "matrices",
    "matrices": "matrices",
    "leading": "leading",
    "trailing": "trailing",
    "blocks": "blocks",
}
"""How tensors are read as matrices where one of these words stands."""

RANKS = {
    "rows": Rank.ROWS,
    "columns": Rank.COLUMNS,
    "matrices": Rank.MATRICES,
    "leading": Rank.ROWS,
    "trailing": Rank.COLUMNS,
    "blocks": Rank.ROWS,
}
"""What the words mean in their view: leading and blocks are the rows of one matrix, trailing its columns."""

NDIM = "ndim"
"""The function ``ndim(param)``: how many axes the tensor has."""

EXTENTS = {
    NDIM: "sg_geometry[6]",
    "row": "sg_geometry[2]",
    "column": "sg_geometry[1]",
    "matrix": "(sg_geometry[1] * sg_geometry[2])",
    "rows": "(sg_geometry[0] * sg_geometry[1])",
    "columns": "(sg_geometry[0] * sg_geometry[2])",
    "matrices": "sg_geometry[0]",
}
"""How large a tensor is, and where kernels have it: its axes; the elements of a row, a column, a matrix; how
many rows, columns and matrices there are."""


@dataclass(frozen=True, slots=True)
class ReductionKind:
    """A reduction that an equation may call.

    ``arity``: how many arguments it takes. ``largest``: terms are combined by the larger one, not added.
    ``doc`` is what the language reference prints.
    """

    name: str
    arity: int
    doc: str
    largest: bool = False


REDUCTIONS: dict[str, ReductionKind] = {
    kind.name: kind
    for kind in (
        ReductionKind("sum", 1, "the sum of the elements"),
        ReductionKind("mean", 1, "the sum divided by the number of elements"),
        ReductionKind("dot", 2, "the sum of the products of two"),
        ReductionKind("norm2", 1, "the root of the sum of the squares"),
        ReductionKind("norm1", 1, "the sum of the absolute values"),
        ReductionKind("max_abs", 1, "the largest absolute value; NaN if there is one", largest=True),
        ReductionKind("count_nonzero", 1, "how many elements differ from zero"),
    )
}
