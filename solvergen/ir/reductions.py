"""The reductions of the language: one literal table.

Each makes one float64 number of the elements of a tensor, or of all tensors of the optimizer, in the order
that the language defines (``docs/language.md``): a sum of terms in float64, or their largest.
"""

from __future__ import annotations

from dataclasses import dataclass

ALL = "all"
"""As a last argument: over all tensors of the optimizer that take part in the step."""


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
