"""Types of values of lines, and how a rule reads tensors."""

from __future__ import annotations

import pytest

from solvergen.errors import SpecError
from solvergen.ir.nodes import Reduce, Round, walk
from solvergen.ir.text import expression_text
from solvergen.ir.types import Rank, highest, holds
from tests.support.rules import typed

STATE = "r: {shape: rows}\nc: {shape: columns}\nm: {shape: matrices}"
USED = "r = r + m\nc = c + m\nm = m + 1\nparam = param - lr*grad*r*c"


def value(folder, equation, state=STATE):
    program = typed(folder, f"{equation}\n{USED}\nparam = param + x", state=state)
    return program.statements[0].value


@pytest.mark.parametrize(
    ("equation", "rank", "text"),
    [
        ("x = sum(grad, rows)", Rank.ROWS, "sum(grad, rows)"),
        ("x = max_abs(grad, columns)", Rank.COLUMNS, "max_abs(grad, columns)"),
        ("x = mean(grad, matrices)*lr", Rank.MATRICES, "mean(grad, matrices)*lr"),
        ("x = m + r", Rank.ROWS, "m + r"),
        ("x = lr*c**2", Rank.COLUMNS, "lr*ipow(c, 2)"),
        ("x = lr*c**t", Rank.COLUMNS, "lr*pow(c, t)"),
        ("x = r*c", Rank.ELEMENT, "round(r)*round(c)"),
        ("x = m*r*c", Rank.ELEMENT, "round(m*r)*round(c)"),
        ("x = grad*(r + m)", Rank.ELEMENT, "grad*round(r + m)"),
        ("x = where(r > 1, m, lr)", Rank.ROWS, "where(r > 1, m, lr)"),
        ("x = where(r > c, m, lr)", Rank.ELEMENT, "where(round(r) > round(c), round(m), round(lr))"),
        ("x = sum(r)", Rank.SCALAR, "sum(r)"),
        ("x = norm2(c, matrices)", Rank.MATRICES, "norm2(c, matrices)"),
        ("x = mean(m)", Rank.SCALAR, "mean(m)"),
        ("x = dot(grad, r, columns)", Rank.COLUMNS, "dot(grad, round(r), columns)"),
        ("x = lr*ndim(param)", Rank.SCALAR, "lr*ndim(param)"),
    ],
)
def test_ranks_and_roundings(tmp_path, equation, rank, text):
    found = value(tmp_path, equation)
    assert found.type.rank is rank
    assert expression_text(found) == text


def test_a_temporary_has_the_highest_rank_of_its_values(tmp_path):
    program = typed(tmp_path, f"x = lr\nx = x*r\n{USED}\nparam = param + x", state=STATE)
    assert program.symbol("x").type.rank is Rank.ROWS
    program = typed(tmp_path, f"x = r\nx = x*c\n{USED}\nparam = param + x", state=STATE)
    assert program.symbol("x").type.rank is Rank.ELEMENT
    assert isinstance(program.statements[0].value, Round)


@pytest.mark.parametrize(
    ("word", "view", "rank"),
    [
        ("rows", "matrices", "rows"),
        ("columns", "matrices", "columns"),
        ("matrices", "matrices", "matrices"),
        ("leading", "leading", "rows"),
        ("trailing", "trailing", "columns"),
        ("blocks", "blocks", "rows"),
    ],
)
def test_words_say_how_tensors_are_read(tmp_path, word, view, rank):
    program = typed(tmp_path, f"param = param - lr*grad*sum(grad, {word})")
    assert program.view == view
    (reduction,) = (n for n in walk(program.statements[0].value) if isinstance(n, Reduce))
    assert reduction.along == rank


def test_a_rule_without_lines_reads_tensors_as_they_are(tmp_path):
    assert typed(tmp_path, "param = param - lr*grad*sum(grad)").view == ""
    assert typed(tmp_path, "param = param - lr*grad*ndim(param)").view == "matrices"


@pytest.mark.parametrize(
    ("equation", "code"),
    [
        ("x = sum(r, rows)", "SG094"),
        ("x = sum(m, matrices)", "SG094"),
        ("x = dot(r, c)", "SG094"),
        ("x = norm1(m, all)", "SG094"),
        ("x = sum(lr, rows)", "SG083"),
        ("x = sum(grad, rows) + sum(grad, leading)", "SG093"),
        ("x = sum(grad, blocks)", "SG093"),
        ("x = lr*ndim(r)", "SG055"),
        ("r = c", "SG085"),
        ("m = r", "SG085"),
        ("x = columns", "SG056"),
    ],
)
def test_what_is_refused(tmp_path, equation, code):
    with pytest.raises(SpecError) as raised:
        value(tmp_path, equation)
    codes = [d.code for d in raised.value.diagnostics if d.severity == "error"]
    assert codes[:1] == [code]


def test_order_of_ranks():
    assert highest([]) is Rank.SCALAR
    assert highest([Rank.MATRICES, Rank.SCALAR]) is Rank.MATRICES
    assert highest([Rank.ROWS, Rank.MATRICES, Rank.COLUMNS]) is Rank.ELEMENT
    assert holds(Rank.ROWS, Rank.MATRICES)
    assert not holds(Rank.ROWS, Rank.COLUMNS)
    assert not holds(Rank.MATRICES, Rank.ROWS)
