"""Reductions of columns that take the terms of those of rows."""

from __future__ import annotations

from solvergen.emit.terms import ReductionContext, TermContext, formed_terms, sharing_terms


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


def test_terms_are_formed_once() -> None:
    rows = (reduction(0, "a"), reduction(1, "b", "X", larger=True))
    columns = sharing_terms((reduction(0, "a"), reduction(1, "b"), reduction(2, "c", "Y")), rows)
    assert formed_terms(rows, columns) == (
        TermContext("sg_row_0", None, "double", "a"),
        TermContext("sg_row_1", "X", "sg_real", "b"),
        TermContext("sg_column_1", None, "double", "b"),
        TermContext("sg_column_2", "Y", "double", "c"),
    )


def test_how_two_terms_become_one() -> None:
    assert reduction(0, "a").combined("x", "y[0]") == "x + y[0]"
    assert reduction(0, "a", larger=True).combined("x", "y[0]") == "sg_larger_real(x, y[0])"
