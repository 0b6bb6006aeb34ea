"""Flow of values under every setting of the options."""

from __future__ import annotations

import pytest

from solvergen.frontend.flow import reads, setting_text
from solvergen.ir.guards import Guard
from solvergen.spec.model import Constraint, State, Text
from tests.unit.frontend.support import analysed, codes, places, value

GD = "param = param - lr*grad"


def state(name, when=None, shape="param"):
    return State(name, 0.0, shape, None if when is None else Text.of(when, "rule.yaml", 300, 1))


def message(analysis, code):
    (found,) = [d for d in analysis.diagnostics if d.code == code]
    return found.message


def test_a_sound_rule_has_no_findings():
    analysis = analysed(
        "m = m + grad", ("flag", "m = 2*m"), "x = where(flag, m, -m)", "param = param - lr*x",
        options="flag", state=(state("m"),),
    )  # fmt: skip
    assert codes(analysis) == []
    assert analysis.parsed is not None
    assert analysis.typed is not None


class TestUseBeforeAssignment:
    def test_never_assigned_before(self):
        analysis = analysed("param = param - lr*x", "x = grad")
        assert places(analysis) == [("SG072", 1, 20)]
        assert message(analysis, "SG072") == "x is used before it is assigned"

    def test_in_its_own_first_assignment(self):
        assert places(analysed("x = x + grad", "param = param - lr*x")) == [("SG072", 1, 5)]

    def test_assigned_under_one_setting_only(self):
        analysis = analysed(("a", "x = grad"), "param = param - lr*x", options="a")
        assert message(analysis, "SG072") == "x is used before it is assigned when a is off"

    def test_assigned_under_both_settings(self):
        assert (
            codes(analysed(("a", "x = grad"), ("not a", "x = -grad"), "param = param - lr*x", options="a"))
            == []
        )

    def test_read_under_the_same_condition(self):
        assert (
            codes(analysed(("a", "x = grad"), ("a", "param = param - lr*x"), ("not a", GD), options="a"))
            == []
        )

    def test_read_in_the_branch_of_where_that_the_option_takes(self):
        assert codes(analysed(("a", "x = 2*grad"), "param = param - lr*where(a, x, grad)", options="a")) == []
        assert (
            codes(analysed(("a", "x = 2*grad"), "param = param - lr*where(not a, grad, x)", options="a"))
            == []
        )
        assert (
            codes(analysed(("a", "x = 2*grad"), "param = param - lr*(x if a else grad)", options="a")) == []
        )

    def test_read_in_the_other_branch(self):
        analysis = analysed(("a", "x = 2*grad"), "param = param - lr*where(a, grad, x)", options="a")
        assert "SG072" in codes(analysis)

    def test_a_condition_of_values_does_not_protect(self):
        analysis = analysed(
            ("a", "x = 2*grad"), "param = param - lr*where(lr > 0 and a, x, grad)", options="a"
        )
        assert "SG072" in codes(analysis)

    def test_three_options(self):
        update = [
            ("a", "x = grad"), ("not a and b", "x = 2*grad"), ("not a and not b and c", "x = 3*grad"),
            "param = param - lr*x",
        ]  # fmt: skip
        analysis = analysed(*update, options="a b c")
        assert message(analysis, "SG072").endswith("when a is off and b is off and c is off")
        assert codes(analysed(*update[:2], ("not (a or b)", "x = 3*grad"), update[3], options="a b")) == []

    def test_settings_that_constraints_forbid_do_not_count(self):
        never_neither = Constraint(Text.of("a or b"), "one of a and b")
        update = [("a", "x = grad"), ("b", "x = -grad"), "param = param - lr*x"]
        assert "SG072" in codes(analysed(*update, options="a b"))
        analysis = analysed(*update, options="a b", constraints=(never_neither,))
        # Both off violates the constraint, which is therefore also reported of the defaults.
        assert codes(analysis) == ["SG090"]

    def test_conditional_constraints_forbid_settings_too(self):
        needs = Constraint(Text.of("b"), "a needs b", when=Text.of("a"))
        update = [("b", "x = grad"), ("not b", "y = grad"), ("a", "param = param - lr*x"), ("not a", GD)]
        assert "SG072" in codes(analysed(*update[:1], *update[2:], options="a b"))
        assert codes(analysed(*update[:1], *update[2:], options="a b", constraints=(needs,))) == []


class TestStateOutsideItsWhen:
    def test_read(self):
        analysis = analysed(
            ("a", "m = m + grad"), "param = param - lr*m", options="a", state=(state("m", "a"),)
        )
        assert places(analysis) == [("SG073", 2, 20)]
        assert message(analysis, "SG073") == "m exists only when a, but is used when a is off"

    def test_assigned(self):
        analysis = analysed(
            "m = grad", ("a", "param = param - lr*m"), ("not a", GD), options="a", state=(state("m", "a"),)
        )
        assert places(analysis) == [("SG073", 1, 1)]
        assert message(analysis, "SG073") == "m exists only when a, but is assigned when a is off"

    def test_only_where_it_is_not(self):
        analysis = analysed(
            ("a", "m = m + grad"),
            ("not a", "param = param - lr*m"),
            ("a", GD),
            options="a",
            state=(state("m", "a"),),
        )
        assert message(analysis, "SG073") == "m exists only when a, but is used only where it does not exist"

    def test_protected_by_where(self):
        analysis = analysed(
            ("a", "m = max(m, grad)"),
            "param = param - lr*where(a, m, grad)",
            options="a",
            state=(state("m", "a"),),
        )
        assert codes(analysis) == []

    def test_condition_that_implies_the_other(self):
        analysis = analysed(
            ("a and b", "m = m + grad"), ("b and a", "param = param - lr*m"), ("not (a and b)", GD),
            options="a b", state=(state("m", "a"),),
        )  # fmt: skip
        assert codes(analysis) == ["SG069"]


class TestParam:
    def test_never_assigned(self):
        assert places(analysed("m = m + lr*grad", state=(state("m"),))) == [("SG070", 1, 1)]

    def test_a_slip_of_its_name(self):
        analysis = analysed("parm = param - lr*grad")
        assert places(analysis) == [("SG070", 1, 1)]
        assert "'parm'" in analysis.diagnostics[0].hint

    def test_nothing_at_all(self):
        assert "SG070" in codes(analysed("x = lr"))

    def test_not_under_every_setting(self):
        analysis = analysed(("a or b", GD), options="a b")
        assert message(analysis, "SG071") == "param is not assigned when a is off and b is off"

    def test_under_every_setting_by_parts(self):
        assert codes(analysed(("a", GD), ("not a", "param = param + lr*grad"), options="a")) == []


class TestDeadStatements:
    def test_never_used(self):
        assert places(analysed("x = lr*grad", GD)) == [("SG077", 1, 1)]

    def test_overwritten(self):
        analysis = analysed("x = grad", "x = 2*grad", "param = param - lr*x")
        assert places(analysis) == [("SG077", 1, 1)]
        assert "overwritten" in message(analysis, "SG077")

    def test_overwritten_under_one_setting_only_is_fine(self):
        assert codes(analysed("x = grad", ("a", "x = 2*grad"), "param = param - lr*x", options="a")) == []

    def test_overwritten_under_both_settings(self):
        update = ["x = grad", ("a", "x = 2*grad"), ("not a", "x = 3*grad"), "param = param - lr*x"]
        assert places(analysed(*update, options="a")) == [("SG077", 1, 1)]

    def test_a_state_overwritten(self):
        update = ["m = m + grad", "m = grad", "param = param - lr*m"]
        assert places(analysed(*update, state=(state("m"),))) == [("SG077", 1, 1)]

    def test_the_parameter_overwritten(self):
        assert places(analysed("param = 2*param", "param = lr*grad")) == [("SG077", 1, 1)]

    def test_assigned_to_itself(self):
        assert codes(analysed("param = param", GD)) == ["SG078"]

    def test_warnings_do_not_stop_compilation(self):
        analysis = analysed("x = lr*grad", GD)
        assert [d.severity for d in analysis.diagnostics] == ["warning"]
        assert analysis.typed is not None

    def test_errors_silence_them(self):
        assert codes(analysed("x = lr*gard", GD)) == ["SG060"]


class TestWhens:
    @pytest.mark.parametrize("when", ["a and not a", "not (a or not a)", "a and b and not b"])
    def test_never(self, when):
        analysis = analysed((when, "param = lr"), GD, ("a and b", "param = 2*param"), options="a b")
        assert [p for p in places(analysis) if p[0] == "SG074"] == [("SG074", 101, 1)]

    def test_never_because_of_a_constraint(self):
        together = Constraint(Text.of("not (a and b)"), "not both")
        update = [GD, ("a", "param = 2*param"), ("b", "param = 3*param"), ("a and b", "param = 4*param")]
        assert codes(analysed(*update, options="a b", constraints=(together,))) == ["SG074"]

    def test_always(self):
        analysis = analysed((("a or not a"), GD), options="a")
        assert codes(analysis) == ["SG075"]

    def test_of_state(self):
        analysis = analysed(
            "m = m + grad", "param = param - lr*m", options="a", state=(state("m", "a or not a"),)
        )
        assert places(analysis) == [("SG075", 300, 1)]

    def test_not_of_options(self):
        analysis = analysed(("a and lr > 0 and t", GD), options="a")
        assert places(analysis) == [("SG076", 101, 7), ("SG076", 101, 18)]

    def test_an_unknown_option(self):
        analysis = analysed(("amsgard", GD), options="amsgrad")
        assert places(analysis) == [("SG060", 101, 1)]
        assert analysis.diagnostics[0].hint == "did you mean 'amsgrad'?"

    def test_a_literal(self):
        assert "SG049" in codes(analysed(("True", GD), options="a"))

    def test_one_condition_over_several_equations_is_reported_once(self):
        from dataclasses import replace

        from solvergen.frontend.resolve import analyse
        from tests.unit.frontend.support import spec

        rule = spec((("a or not a"), "x = grad"), ("a or not a", "param = param - lr*x"), options="a")
        shared = tuple(replace(s, when=rule.update[0].when) for s in rule.update)
        assert codes(analyse(replace(rule, update=shared))) == ["SG075"]


def test_reads_narrow_through_where():
    guard = Guard.always(("a", "b"))
    found = {n.name: g.text() for n, g in reads(value("where(a, x, where(b, y, z)) + w"), guard)}
    assert found == {
        "a": "True",
        "x": "a",
        "b": "not a",
        "y": "not a and b",
        "z": "not a and not b",
        "w": "True",
    }


def test_setting_text_names_the_smallest_difference():
    a, b = (Guard.option(("a", "b"), name) for name in "ab")
    always = Guard.always(("a", "b"))
    assert setting_text(always, always) == ""
    assert setting_text(~a, always) == " when a is off"
    assert setting_text(a & b, always) == " when a is on and b is on"
    assert setting_text(a & b, a) == " when b is on"
    assert setting_text(a & b, a & b) == ""


def test_many_options_are_told_apart_in_time():
    import time

    names = "abcdefghij"
    odd = " and ".join(names[:9])
    update = [(f"not ({odd} and j)", "x = grad"), "param = param - lr*x"]
    start = time.process_time()
    analysis = analysed(*update, options=" ".join(names))
    assert message(analysis, "SG072").endswith("j is on")
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    "equations",
    [
        ["param = param - lr*LONG"],
        ["param = param - lr*LONG(grad)"],
        ["LONG = grad", "param = param - lr*grad"],
        ["param = param - lr*grad*LONG", "LONG = 1"],
        ["LONG = grad > 0", "LONG = grad", "param = param - lr*LONG"],
    ],
)
def test_a_name_that_fills_pages_is_cut_in_sentences(equations):
    long = "g" * 3000
    found = analysed(*(text.replace("LONG", long) for text in equations)).diagnostics
    assert found
    for diagnostic in found:
        assert len(diagnostic.message) < 300
        assert len(diagnostic.hint or "") < 300
