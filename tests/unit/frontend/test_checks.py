"""Names, use, constants, conditions with a known outcome, and the words around them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from solvergen.errors import SpecError
from solvergen.frontend.resolve import analyse, scalar_expression
from solvergen.ir.program import Level
from solvergen.spec.model import Constraint, Hyperparameter, State, Text
from solvergen.spec.reader import examine
from tests.unit.frontend.support import analysed, codes, places, spec

GD = "param = param - lr*grad"


def state(name, init=0.0, shape="param"):
    return State(name, Text.of(init, "rule.yaml", 400, 1) if isinstance(init, str) else init, shape)


def hint(analysis, code="SG060"):
    return next(d.hint for d in analysis.diagnostics if d.code == code)


class TestNames:
    @pytest.mark.parametrize(
        ("written", "meant"),
        [
            ("bata1", "beta1"), ("Beta1", "beta1"), ("beta_1", "beta1"), ("gard", "grad"), ("g", "grad"),
            ("w", "param"), ("step", "t"), ("learning_rate", "lr"), ("parm", "param"),
        ],
    )  # fmt: skip
    def test_a_near_name_is_suggested(self, written, meant):
        analysis = analysed(f"param = param - lr*beta1*{written}", hyperparameters="lr beta1")
        assert places(analysis) == [("SG060", 1, 26)]
        assert hint(analysis) == f"did you mean '{meant}'?"

    def test_no_name_is_suggested_for_what_is_like_nothing(self):
        said = "declare it under hyperparameters, or assign it first"
        assert hint(analysed("param = param - lr*grad*zzz")) == said

    def test_all_unknown_names_are_reported(self):
        analysis = analysed(
            "m = bata1*m + qq", "param = param - lr*m*bata1", hyperparameters="lr beta1", state=(state("m"),)
        )
        assert places(analysis) == [("SG060", 1, 5), ("SG060", 1, 15), ("SG060", 2, 22)]

    def test_a_name_of_an_unreadable_equation_is_known(self):
        analysis = analysed("x = grad^2", "param = param - lr*x")
        assert codes(analysis) == ["SG044"]

    def test_unreadable_conditions_excuse_what_they_might_use(self):
        assert codes(analysed(("a && b", GD), options="a b")) == ["SG044"]

    @pytest.mark.parametrize(
        ("target", "what"),
        [("grad", "the gradient"), ("t", "the count"), ("lr", "a hyperparameter"), ("flag", "an option")],
    )
    def test_what_cannot_be_assigned(self, target, what):
        analysis = analysed(f"{target} = grad", GD, ("flag", GD), options="flag")
        assert places(analysis)[0] == ("SG061", 1, 1)
        assert what in analysis.diagnostics[0].message

    @pytest.mark.parametrize("name", ["max", "sum", "sg_x", "_x", "true", "ipow", "a" * 65])
    def test_names_that_no_temporary_may_have(self, name):
        assert "SG063" in codes(analysed(f"{name} = grad", GD))

    def test_names_of_python_and_c_are_fine_for_temporaries(self):
        analysis = analysed("int = grad", "print = int", "E = print", "param = param - lr*E")
        assert codes(analysis) == []


class TestUse:
    def test_hyperparameter(self):
        assert codes(analysed(GD, hyperparameters="lr eps")) == ["SG064"]

    def test_used_by_a_derived_option_or_an_initial_value_only(self):
        analysis = analysed(
            "m = m + grad", ("on", "param = param - lr*m"), ("not on", GD), hyperparameters="lr a b",
            derived={"on": "a != 0"}, state=(state("m", "b"),),
        )  # fmt: skip
        assert codes(analysis) == []

    def test_used_by_a_constraint_only_is_unused(self):
        only = Constraint(Text.of("eps > 0"), "eps")
        assert codes(analysed(GD, hyperparameters="lr eps", constraints=(only,))) == ["SG064"]

    def test_option(self):
        assert codes(analysed(GD, options="a")) == ["SG065"]

    def test_option_in_a_when_or_an_equation(self):
        assert codes(analysed(("a", GD), ("not a", GD), options="a")) == []
        assert codes(analysed("param = param - lr*where(a, grad, -grad)", options="a")) == []

    def test_state(self):
        assert codes(analysed(GD, state=(state("m"),))) == ["SG066"]
        assert codes(analysed("param = param - lr*m*grad", state=(state("m"),))) == ["SG067"]
        assert codes(analysed("m = m + grad", GD, state=(state("m"),))) == ["SG068"]

    def test_state_that_is_there_to_be_read(self):
        average = replace(state("m"), output=True)
        assert codes(analysed("m = m + grad", GD, state=(average,))) == []
        assert codes(analysed("x = m + grad", GD, state=(average,)))[:1] == ["SG067"]

    def test_a_copy_of_the_parameter_may_stay_as_it_is(self):
        assert (
            codes(analysed("param = param - lr*(grad + param - start)", state=(state("start", "param"),)))
            == []
        )

    def test_state_that_matters_through_other_state(self):
        analysis = analysed(
            "m = m + grad", "v = v + m", "param = param - lr*v", state=(state("m"), state("v"))
        )
        assert codes(analysis) == []


class TestTypes:
    @pytest.mark.parametrize(
        ("expression", "code", "column"),
        [
            ("grad*(grad > 0)", "SG080", 15),
            ("flag + grad", "SG080", 9),
            ("-flag*grad", "SG080", 10),
            ("sqrt(grad > 0)", "SG080", 14),
            ("where(flag, grad > 0, grad)", "SG080", 21),
            ("grad > 0", "SG080", 9),
            ("grad**(grad > 0)", "SG080", 16),
            ("where(grad, grad, param)", "SG081", 15),
            ("grad if lr else param", "SG081", 17),
            ("where(lr and flag, grad, param)", "SG081", 15),
            ("where(not t, grad, param)", "SG081", 19),
            ("where(flag == flag, grad, param)", "SG082", 15),
            ("where(flag > 0, grad, param)", "SG082", 15),
        ],
    )
    def test_mixed_up_kinds(self, expression, code, column):
        analysis = analysed(f"param = {expression}", "param = param - lr*where(flag, 1, 2)", options="flag")
        assert places(analysis) == [(code, 1, column)]

    def test_condition_in_one_place_and_number_in_another(self):
        analysis = analysed("x = grad > 0", "x = grad", "y = x + 1", "param = param - lr*y")
        assert places(analysis) == [("SG084", 2, 1)]

    def test_scalar_state_takes_no_elements(self):
        analysis = analysed("s = s + grad", "param = param - lr*s*grad", state=(state("s", shape="scalar"),))
        assert places(analysis) == [("SG085", 1, 5)]

    def test_scalar_state_takes_no_condition(self):
        analysis = analysed("s = t > 1", "param = param - lr*s*grad", state=(state("s", shape="scalar"),))
        assert places(analysis) == [("SG080", 1, 5)]

    def test_one_mistake_is_reported_once(self):
        analysis = analysed("x = (grad > 0)*2 + 1", "y = sqrt(x)", "param = param - lr*y")
        assert codes(analysis) == ["SG080"]


class TestConstants:
    @pytest.mark.parametrize(
        ("expression", "code", "column"),
        [
            ("grad/0", "SG086", 9),
            ("grad/(1 - 1)", "SG086", 9),
            ("grad//0.0", "SG086", 9),
            ("grad % -0", "SG086", 9),
            ("1e200*1e200*grad", "SG088", 9),
            ("grad*9**9**9", "SG088", 14),
            ("grad*exp(1000)", "SG088", 14),
            ("grad*log(0)", "SG088", 14),
            ("grad*sqrt(-1)", "SG088", 14),
            ("grad*(-8)**(1/3)", "SG088", 14),
            ("lr**4294967296*grad", "SG087", 13),
        ],
    )
    def test_bad_constants(self, expression, code, column):
        assert places(analysed(f"param = {expression}", GD))[:1] == [(code, 1, column)]

    @pytest.mark.parametrize(
        "expression",
        ["grad*1e-300*1e-300", "grad*2**40", "grad*10**20", "grad/1e-320", "grad*(1e308 + 1e307)", "grad*0"],
    )
    def test_fine_constants(self, expression):
        assert codes(analysed(f"param = {expression}", "param = param - lr*grad")) == []


class TestKnownOutcomes:
    @pytest.mark.parametrize(
        ("condition", "outcome"),
        [
            ("h < 0", "never"), ("h >= 0", "always"), ("h == 2", "never"), ("h != 2", "always"),
            ("1 - h > 0", "always"), ("1 - h <= 0", "never"), ("-h > 0", "never"), ("t < 1", "never"),
            ("t >= 1", "always"), ("2 > 1", "always"), ("h + 1 < 1", "never"), ("2*h < 2", "always"),
            ("sqrt(h) < 0", "never"), ("abs(h - 2) > 0.9", "always"), ("h/2 <= 0.5", "always"),
        ],
    )  # fmt: skip
    def test_decided_by_the_ranges(self, condition, outcome):
        h = Hyperparameter("h", 0.5, min=0.0, below=1.0)
        analysis = analysed(f"param = param - lr*where({condition}, grad, h)", extra=(h,))
        assert codes(analysis) == ["SG089"]
        assert outcome in analysis.diagnostics[0].message
        assert analysis.typed is not None

    @pytest.mark.parametrize(
        "condition",
        [
            "h == 0",
            "h > 0",
            "h < 0.9",
            "1 - h**t > 0",
            "t > 1",
            "grad > 0",
            "grad == grad",
            "grad != grad",
            "h/(h - 0.5) > 0",
            "lr > 0",
        ],
    )
    def test_undecided(self, condition):
        h = Hyperparameter("h", 0.5, min=0.0, below=1.0)
        assert codes(analysed(f"param = param - lr*where({condition}, grad, h)", extra=(h,))) == []

    @pytest.mark.parametrize("condition", ["grad < grad", "grad <= grad", "h > h"])
    def test_a_value_compared_with_itself(self, condition):
        h = Hyperparameter("h", 0.5)
        analysis = analysed(f"param = param - lr*where({condition}, grad, h)", extra=(h,))
        assert codes(analysis) == ["SG089"]

    def test_an_option_whose_setting_is_known(self):
        analysis = analysed(("a", "param = param - lr*where(a, grad, param)"), ("not a", GD), options="a")
        assert places(analysis) == [("SG089", 1, 26)]


class TestDeclarations:
    def test_derived_option_over_other_things(self):
        analysis = analysed(
            ("on", GD), ("not on", GD), options="a", derived={"on": "a or grad > 0 or lrr > 0"}
        )
        assert [p for p in places(analysis) if p[1] == 200] == [
            ("SG062", 200, 1),
            ("SG062", 200, 6),
            ("SG060", 200, 18),
        ]

    def test_derived_option_must_be_a_condition(self):
        assert ("SG081", 200, 1) in places(analysed(("on", GD), ("not on", GD), derived={"on": "lr"}))

    def test_derived_option_that_never_holds(self):
        h = Hyperparameter("h", 0.5, min=0.0)
        analysis = analysed(("on", GD), ("not on", GD), derived={"on": "h < 0"}, extra=(h,))
        assert places(analysis) == [("SG091", 200, 1)]

    def test_initial_value_is_a_number_of_settings(self):
        update = ["m = m + grad", "param = param - lr*m"]
        assert codes(analysed(*update, state=(state("m", "lr*2"),))) == []
        assert places(analysed(*update, state=(state("m", "lr > 0"),))) == [("SG080", 400, 1)]
        assert places(analysed(*update, state=(state("m", "t + 1"),))) == [("SG062", 400, 1)]
        assert places(analysed(*update, state=(state("m", "1/0"),))) == [("SG086", 400, 1)]
        assert codes(analysed(*update, state=(state("m", "param"),))) == []

    def test_constraints(self):
        def check(that, when=None):
            constraint = Constraint(Text.of(that), "no", None if when is None else Text.of(when))
            h = Hyperparameter("h", 0.5, min=0.0, below=1.0)
            return codes(
                analysed(
                    "param = param - lr*grad*where(a, h, 1)",
                    options="a",
                    extra=(h,),
                    constraints=(constraint,),
                )
            )

        assert check("h < 0.9") == []
        assert check("h > 0.6") == ["SG090"]
        assert check("h > 0.6", "a") == []
        assert check("h > 0.6", "not a") == ["SG090"]
        assert check("h > 0.6", "h > 0.55") == []
        assert check("h > 1") == ["SG091"]
        assert check("h < 1") == ["SG092"]
        assert check("h") == ["SG081"]
        assert check("grad > 0") == ["SG062"]
        assert check("h < 0.9", "m > 0") == ["SG060"]
        assert check("h <") == ["SG052"]

    def test_the_defaults_of_derived_options_count(self):
        needs = Constraint(Text.of("not on"), "no")
        analysis = analysed(("on", GD), ("not on", GD), derived={"on": "lr > 0.4"}, constraints=(needs,))
        assert sorted(codes(analysis)) == ["SG074", "SG075", "SG090"]


def test_everything_is_reported_at_once_in_the_order_of_the_file():
    analysis = analysed(
        "m = bata1*m + (1 - beta1)*grad", "v = max(grad)", "param = param - lr*2x", ("zz", "param = t > 9"),
        hyperparameters="lr beta1 eps", state=(state("m"),),
    )  # fmt: skip
    assert places(analysis) == [
        ("SG060", 1, 5), ("SG055", 2, 5), ("SG047", 3, 20), ("SG080", 4, 9), ("SG060", 104, 1),
    ]  # fmt: skip
    assert analysis.parsed is None
    assert analysis.typed is None


def test_both_levels_come_at_once():
    found = analyse(spec(GD))
    assert found.parsed.level is Level.PARSED
    assert found.typed.level is Level.TYPED
    assert all(symbol.type is None for symbol in found.parsed.symbols)
    assert all(symbol.type is not None for symbol in found.typed.symbols)


def test_symbols_come_in_order():
    program = analyse(
        spec(
            "b = grad",
            "m = m + b",
            ("flag", "a = m"),
            "param = param - lr*where(flag, a, m)",
            options="flag",
            state=(state("m"),),
        )
    ).parsed
    assert [s.name for s in program.symbols] == ["param", "grad", "m", "lr", "t", "flag", "b", "a"]
    assert program.symbol("a").guard.text() == "flag"
    assert program.statements[2].guard.text() == "flag"
    assert program.statements[0].source == "b = grad"


def test_scalar_expression_raises_everything():
    with pytest.raises(SpecError) as raised:
        scalar_expression(Text.of("grad + qq"), spec(GD))
    assert [d.code for d in raised.value.diagnostics] == ["SG062", "SG060"]


FIXTURES = sorted((Path(__file__).parents[2] / "invalid_specs").glob("SG0[4-9]*.yaml"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_every_finding_says_what_to_do(path):
    rule, _ = examine(path)
    assert rule is not None
    for diagnostic in analyse(rule).diagnostics:
        assert diagnostic.hint
        assert "\n" not in diagnostic.message
