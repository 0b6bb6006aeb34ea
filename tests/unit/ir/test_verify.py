"""The verifier of the IR: every broken invariant is found, and names the pass that broke it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solvergen import passes
from solvergen.errors import CompilerBug
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Binary, Call, Compare, Logic, Name, Number, Round, Stored, Unary
from solvergen.ir.program import Level, Result
from solvergen.ir.schedule import Column
from solvergen.ir.types import ELEMENT_BOOL, ELEMENT_REAL, SCALAR_BOOL, SCALAR_REAL
from solvergen.ir.verify import verify, verify_schedule
from solvergen.passes.schedule import schedule
from tests.support.rules import compiled

STATE = "m: {init: 0}\np: {init: 1, shape: scalar}"
UPDATE = """
- p = p*lr
- m = m*p + grad
- {when: a, do: m = m + param}
- param = param - lr*m
"""
ONE = Number(1.0, True, type=SCALAR_REAL)
PARAM = Name("param", type=ELEMENT_REAL)
FLAG = Compare(">", ONE, ONE, type=SCALAR_BOOL)


@pytest.fixture
def unit(tmp_path):
    return compiled(tmp_path, UPDATE, state=STATE, options="a: {default: false}")


def with_value(program, value):
    """``program`` with the value of its last statement replaced."""
    *others, last = program.statements
    return replace(program, statements=(*others, replace(last, value=value)))


def test_good_programs_pass(unit):
    for program in (unit.parsed, unit.typed, unit.optimised):
        assert verify(program, "nothing") is program
    assert verify_schedule(unit.schedule) is unit.schedule


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (Name("param"), "without a type"),
        (Name("nowhere", type=ELEMENT_REAL), "unknown name nowhere"),
        (Binary("+", PARAM, ONE, type=ELEMENT_REAL), "without being rounded"),
        (Binary("**", PARAM, PARAM, type=ELEMENT_REAL), "** after typing"),
        (Unary("-", PARAM, type=SCALAR_REAL), "a scalar made of elements"),
        (Round(PARAM, type=ELEMENT_REAL), "Round must take"),
        (Round(ONE, type=SCALAR_REAL), "Round must take"),
        (Stored("param", PARAM, type=ELEMENT_REAL), "Stored in a typed program"),
        (Compare(">", PARAM, PARAM, type=ELEMENT_REAL), "wrong kind of result"),
        (Logic("and", FLAG, ONE, type=SCALAR_BOOL), "a number used as a condition"),
        (Unary("-", FLAG, type=SCALAR_REAL), "a condition used as a number"),
        (Call("sqrt", (PARAM,), type=ELEMENT_BOOL), None),
    ],
)
def test_typed_programs(unit, value, says):
    with pytest.raises(CompilerBug, match="after mangling") as raised:
        verify(with_value(unit.typed, value), "mangling")
    assert says is None or says in str(raised.value)


def test_parsed_programs_hold_nothing_of_later_levels(unit):
    with pytest.raises(CompilerBug, match="Round in a parsed program"):
        verify(with_value(unit.parsed, Round(Name("lr"))), "parsing")


def test_two_symbols_of_one_name(unit):
    program = replace(unit.typed, symbols=(*unit.typed.symbols, unit.typed.symbols[0]))
    with pytest.raises(CompilerBug, match="two symbols"):
        verify(program, "mangling")


def test_a_target_that_is_no_symbol(unit):
    *others, last = unit.typed.statements
    program = replace(unit.typed, statements=(*others, replace(last, target="nowhere")))
    with pytest.raises(CompilerBug, match="is no symbol"):
        verify(program, "mangling")


class TestSingleAssignment:
    def test_defined_twice(self, unit):
        program = unit.optimised
        with pytest.raises(CompilerBug, match="defined twice"):
            verify(replace(program, statements=(*program.statements, program.statements[-1])), "mangling")

    def test_read_before_its_definition(self, unit):
        program = unit.optimised
        with pytest.raises(CompilerBug, match="may not be defined"):
            verify(replace(program, statements=program.statements[::-1]), "mangling")

    def test_read_where_it_does_not_exist(self, unit):
        program = unit.optimised
        when_a = [s for s in program.statements if not s.guard.is_always]
        assert len(when_a) == 2
        kept = tuple(s for s in program.statements if s is not when_a[1])
        with pytest.raises(CompilerBug, match="may not be defined"):
            verify(replace(program, statements=kept), "mangling")

    def test_a_result_that_is_not_defined(self, unit):
        always = Guard.always(unit.optimised.options)
        program = replace(unit.optimised, results=(Result("param", "nowhere", always),))
        with pytest.raises(CompilerBug, match="nowhere is read"):
            verify(program, "mangling")


class TestSchedule:
    def test_a_host_statement_reads_the_unknown(self, unit):
        first = replace(unit.schedule.host[0], value=Name("nowhere", type=SCALAR_REAL))
        with pytest.raises(CompilerBug, match="nowhere is read"):
            verify_schedule(replace(unit.schedule, host=(first, *unit.schedule.host[1:])))

    def test_elements_on_the_host(self, unit):
        first = replace(unit.schedule.host[0], value=PARAM)
        with pytest.raises(CompilerBug, match="element arithmetic"):
            verify_schedule(replace(unit.schedule, host=(first, *unit.schedule.host[1:])))

    def test_a_column_of_nothing(self, unit):
        always = Guard.always(unit.schedule.options)
        with pytest.raises(CompilerBug, match="ghost is read"):
            verify_schedule(replace(unit.schedule, table=(*unit.schedule.table, Column("ghost", always))))

    def test_a_column_twice(self, unit):
        with pytest.raises(CompilerBug, match="occurs twice"):
            verify_schedule(replace(unit.schedule, table=unit.schedule.table * 2))

    def test_a_scalar_result_of_nothing(self, unit):
        always = Guard.always(unit.schedule.options)
        with pytest.raises(CompilerBug, match="ghost is read"):
            verify_schedule(replace(unit.schedule, scalar_results=(Result("p", "ghost", always),)))

    @pytest.mark.parametrize("part", ["loads", "stores"])
    def test_a_buffer_twice_in_one_pass(self, unit, part):
        (sweep,) = unit.schedule.passes
        doubled = replace(sweep, **{part: getattr(sweep, part) * 2})
        with pytest.raises(CompilerBug, match="twice in one pass"):
            verify_schedule(replace(unit.schedule, passes=(doubled,)))

    def test_a_body_that_reads_what_is_not_loaded(self, unit):
        (sweep,) = unit.schedule.passes
        with pytest.raises(CompilerBug, match="may not be defined"):
            verify_schedule(replace(unit.schedule, passes=(replace(sweep, loads=sweep.loads[1:]),)))


def test_a_broken_pass_is_named(unit, monkeypatch):
    def forgetful(program):
        return replace(program, level=Level.OPTIMISED, statements=program.statements[1:])

    monkeypatch.setattr(passes, "PASSES", (*passes.PASSES, forgetful))
    with pytest.raises(CompilerBug, match="after forgetful"):
        passes.optimise(unit.typed)


def test_scheduling_is_verified(unit):
    program = replace(unit.optimised, statements=unit.optimised.statements[1:])
    with pytest.raises(CompilerBug, match="after scheduling"):
        schedule(program)
