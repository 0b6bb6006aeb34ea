"""Reductions of columns that take the terms of those of rows."""

from __future__ import annotations

from solvergen.emit.terms import ReductionContext, sharing_terms


def reduction(column: int, term: str, guard: str | None = None, *, larger: bool = False) -> ReductionContext:
    """One of a pass, with what doesn't matter here left open."""
    return ReductionContext(column, f"r{column}", guard, term, larger, "sum", ())


def test_the_same_terms_under_the_same_options_are_shared() -> None:
    rows = (reduction(0, "a"), reduction(1, "b"), reduction(2, "c", "X"))
    columns = (
        reduction(0, "b", larger=True),  # combined otherwise, but formed alike
        reduction(1, "c"),
        reduction(2, "c", "X"),
        reduction(3, "d"),
    )
    assert [c.terms_of for c in sharing_terms(columns, rows)] == [1, None, 2, None]
    assert [c.term for c in sharing_terms(columns, rows)] == ["b", "c", "c", "d"]
    assert sharing_terms((), rows) == ()
