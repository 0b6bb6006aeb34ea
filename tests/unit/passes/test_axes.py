"""What nothing hangs on where a tensor has fewer than two axes."""

from __future__ import annotations

import pytest

from tests.support.rules import compiled

STEP = "param = param - lr*grad*{}"


def idle(folder, *lines, state=""):
    """The names that are known to be."""
    return compiled(folder, "\n".join(lines), state=state).schedule.of_matrices


def test_the_other_branch_of_a_choice(tmp_path):
    names = idle(tmp_path, "size = sum(grad, rows)", STEP.format("where(ndim(param) > 1, sqrt(size), 2)"))
    assert "size" in names


@pytest.mark.parametrize(
    ("condition", "used_by_vectors"),
    [
        ("ndim(param) > 1", False),
        ("ndim(param) >= 2", False),
        ("2 <= ndim(param)", False),
        ("not ndim(param) <= 1", False),
        ("ndim(param) == 3", False),
        ("ndim(param) > 1 and lr > size", False),
        ("lr > size and ndim(param) > 1", False),
        ("ndim(param) > 0", True),  # there are tensors of one axis
        ("ndim(param) != 1", True),  # and of none
        ("ndim(param) < 2", True),
        ("ndim(param) > 1 or lr > size", True),
        ("not (ndim(param) > 1 and lr > size)", True),
        ("ndim(param) > lr", True),
        ("ndim(param)/2 > 0.5", True),  # arithmetic isn't followed
    ],
)
def test_conditions(tmp_path, condition, used_by_vectors):
    lines = ("size = sum(grad)", "row = norm1(grad, rows)", f"small = {condition}")
    names = idle(tmp_path, *lines, STEP.format("where(small, row, 2)"))
    assert ("row" not in names) == used_by_vectors


def test_a_condition_that_is_settled_is_still_computed(tmp_path):
    """Kernels read it: what it hangs on may hold anything, but it must come out right."""
    names = idle(
        tmp_path,
        "row = sum(grad, rows)",
        "small = ndim(param) > 1 and max_abs(row) < 1",
        STEP.format("where(small, row, 2)"),
    )
    assert "row" in names
    assert "small" not in names


def test_numbers_that_stand_for_conditions(tmp_path):
    names = idle(
        tmp_path,
        "row = sum(grad, rows)",
        "flag = where(ndim(param) > 1, 1, 0)",
        STEP.format("where(flag != 0, row, 2)"),
    )
    assert "row" in names
    assert "flag" not in names


def test_states_and_what_other_tensors_wait_for_are_needed(tmp_path):
    names = idle(
        tmp_path,
        "kept = sum(grad, rows)",
        "r = r + kept",
        "told = norm1(grad, rows)",
        "everywhere = max_abs(grad*told, all)",
        STEP.format("where(ndim(param) > 1, r, 2)*everywhere"),
        state="r: {shape: rows}",
    )
    assert not {"kept", "told"} & names


def test_one_definition_that_needs_it_is_enough(tmp_path):
    lines = ("row = sum(grad, rows)", "a = where(ndim(param) > 1, row, 2)", STEP.format("a*row"))
    assert "row" not in idle(tmp_path, *lines)


def test_rules_without_lines_have_nothing_of_the_kind(tmp_path):
    assert idle(tmp_path, STEP.format("2")) == frozenset()
