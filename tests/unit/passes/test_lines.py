"""Plans of rules that know lines: which sweeps there are, how they walk, and what stages hand on."""

from __future__ import annotations

import pytest

from solvergen.ir.types import Rank
from tests.support.rules import compiled

FACTORED = """
r = 0.9*r + mean(grad**2, rows)
c = 0.9*c + mean(grad**2, columns)
param = param - lr*grad/sqrt(r/mean(r, matrices)*c)
"""


def plan(folder, update, state="r: {shape: rows}\nc: {shape: columns}"):
    return compiled(folder, update, state=state).schedule


def test_factored_moments_take_one_sweep_before_the_last(tmp_path):
    schedule = plan(tmp_path, FACTORED)
    assert [sweep.walk for sweep in schedule.passes] == ["tiles", "none", "flat"]
    assert [[load.buffer for load in sweep.loads] for sweep in schedule.passes] == [
        ["grad"],
        [],
        ["param", "grad"],
    ]
    assert [(r.kind, r.along) for r in schedule.passes[0].reductions] == [
        ("mean", Rank.ROWS),
        ("mean", Rank.COLUMNS),
    ]
    (of_lines,) = schedule.passes[1].of_lines
    assert (of_lines.kind, of_lines.source, of_lines.along) == ("sum", Rank.ROWS, Rank.MATRICES)
    assert [(stage.number, [own.rank for own in stage.lines]) for stage in schedule.stages] == [
        (1, [Rank.ROWS, Rank.COLUMNS]),
        (2, [Rank.MATRICES, Rank.ROWS]),
    ]


def test_sums_of_tensors_and_of_lines_are_formed_in_sweeps_of_their_own(tmp_path):
    schedule = plan(tmp_path, "param = param - lr*grad/(norm2(grad) + norm2(grad, rows))", "")
    for sweep in schedule.passes:
        assert len({r.along.is_line for r in sweep.reductions}) <= 1
    assert [sweep.walk for sweep in schedule.passes] == ["tiles", "flat", "flat"]
    assert "apart" in schedule.passes[1].reason


def test_what_is_stored_early_needs_no_further_sweep(tmp_path):
    update = """
    total = min(r, c) + grad*grad
    r = max_abs(total, rows)
    c = max_abs(total, columns)
    param = param - lr*grad/sqrt(total + 1)
    """
    (sweep,) = plan(tmp_path, update).passes
    assert sweep.walk == "tiles"
    assert [store.buffer for store in sweep.stores] == ["param"]
    assert "elementwise" not in sweep.reason


def test_a_stage_reads_states_of_other_ranks_as_they_were(tmp_path):
    update = """
    m = m + sum(grad, matrices)
    s = s + 1 + sum(m)
    r = r + m + s
    param = param - lr*grad*r
    """
    before = """
    r = r + m + s
    m = m + sum(grad, matrices)
    s = s + sum(m)
    param = param - lr*grad*r
    """
    state = "r: {shape: rows}\nm: {shape: matrices}\ns: {shape: scalar}"
    schedule = plan(tmp_path, before, state)
    handed = (
        [column.name for column in schedule.values],
        [column.name for column in schedule.line_values[Rank.MATRICES]],
    )
    assert "s_before" in handed[0]
    assert "m_before" in handed[1]
    schedule = plan(tmp_path, update, state)
    assert "s_before" not in [column.name for column in schedule.values]


@pytest.mark.parametrize(
    ("reduction", "lines"),
    [
        ("norm2(grad, matrices)", ["dot", "sum"]),
        ("mean(grad, matrices)", ["sum", "sum"]),
        ("max_abs(grad, matrices)", ["max_abs", "max_abs"]),
        ("count_nonzero(grad, matrices)", ["count_nonzero", "sum"]),
        ("norm1(grad, matrices)", ["norm1", "sum"]),
    ],
)
def test_a_matrix_is_reduced_by_its_rows(tmp_path, reduction, lines):
    schedule = plan(tmp_path, f"param = param - lr*grad*{reduction}", "")
    found = [(r.kind, r.along) for sweep in schedule.passes for r in (*sweep.reductions, *sweep.of_lines)]
    assert found == [(lines[0], Rank.ROWS), (lines[1], Rank.MATRICES)]


def test_rules_without_lines_are_planned_as_ever(tmp_path):
    schedule = plan(tmp_path, "param = param - lr*grad/norm2(grad)", "")
    assert schedule.view == ""
    assert [sweep.walk for sweep in schedule.passes] == ["flat", "flat"]
    assert not any(schedule.line_values.values())
