"""Reductions of columns that take the terms of those of rows."""

from __future__ import annotations

from solvergen.emit.terms import ReductionContext, sharing_terms


def reduction(column: int, term: str, guard: str | None = None, *, larger: bool = False) -> ReductionContext:
    """One of a pass, with what doesn't matter here left open."""
    return ReductionContext(column, f"r{column}", guard, term, larger, "sum", ())


def test_the_same_terms_under_the_same_options_are_shared() -> None:
    rows = (reduction(0, "a"), reduction(1, "b"), reduction(2, "c", "X"))
    columns = (
        reduction(0, "b"),
        reduction(1, "c"),
        reduction(2, "c", "X"),
        reduction(3, "d"),
        reduction(4, "a", larger=True),  # the larger of two is kept in another type than their sum
    )
    shared = sharing_terms(columns, rows)
    assert [c.terms_of for c in shared] == [1, None, 2, None, None]
    assert [c.term for c in shared] == ["b", "c", "c", "d", "a"]
    assert [c.terms for c in shared] == [
        "sg_row_1",
        "sg_column_1",
        "sg_row_2",
        "sg_column_3",
        "sg_column_4",
    ]
    assert sharing_terms((), rows) == ()
