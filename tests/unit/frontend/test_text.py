"""The stable text form of programs."""

from __future__ import annotations

from solvergen.frontend.resolve import analyse
from solvergen.ir.nodes import Name, Number, Round, Stored, Unary
from solvergen.ir.text import expression_text, program_text
from solvergen.ir.types import ELEMENT_REAL
from solvergen.spec.model import State, Text
from tests.unit.frontend.support import spec


def test_a_program_as_text():
    rule = spec(
        "m = lr*m + grad", ("flag", "m = 2*m"), "param = param - where(flag, m, -m)",
        options="flag", state=(State("m"), State("v", 0.0, "param", Text.of("flag"))),
    )  # fmt: skip
    from dataclasses import replace

    rule = replace(rule, state=rule.state[:1])
    found = analyse(rule)
    assert program_text(found.parsed) == (
        "rule, parsed\n"
        "\n"
        "symbols\n"
        "  param  param\n"
        "  grad   grad\n"
        "  m      state\n"
        "  lr     hyperparameter\n"
        "  t      t\n"
        "  flag   option\n"
        "\n"
        "update\n"
        "  m = lr*m + grad                     # rule.yaml:1\n"
        "  m = 2*m  when flag                  # rule.yaml:2\n"
        "  param = param - where(flag, m, -m)  # rule.yaml:3\n"
    )
    lines = program_text(found.typed).splitlines()
    assert lines[0] == "rule, typed"
    assert "  lr     hyperparameter  scalar real" in lines
    assert "  m = round(lr)*m + grad              # rule.yaml:1" in lines


def test_what_the_parser_does_not_know_is_written_as_calls():
    m = Name("m", type=ELEMENT_REAL)
    assert expression_text(Stored("param", Round(Name("lr")))) == "stored(param, round(lr))"
    assert expression_text(Unary("-", Number(2.0))) == "-(2.0)"
    assert expression_text(m) == "m"
