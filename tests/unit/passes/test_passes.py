"""Each pass on small programs: what it does, and what it must leave alone."""

from __future__ import annotations

import pytest

from solvergen.ir.nodes import Number, walk
from solvergen.ir.program import Program
from solvergen.ir.text import expression_text
from solvergen.passes.eliminate_dead import eliminate_dead
from solvergen.passes.fold_constants import fold_constants
from solvergen.passes.lower_powers import lower_powers
from solvergen.passes.select_options import select_options
from solvergen.passes.share import share
from solvergen.passes.single_assignment import single_assignment
from tests.support.rules import compiled, typed


def lines(program: Program) -> list[str]:
    """Statements as text, with their guards."""
    result = []
    for s in program.statements:
        guard = "" if s.guard.is_always else f" when {s.guard.text()}"
        result.append(f"{s.target} = {expression_text(s.value)}{guard}")
    return result


def chain(program: Program, *passes):
    for apply in passes:
        program = apply(program)
    return program


AB = "a: {default: false}\nb: {default: false}"


class TestSelectOptions:
    def test_a_choice_becomes_two_statements(self, tmp_path):
        program = select_options(
            typed(tmp_path, "g = where(a, grad, -grad)\nparam = param - lr*g", options="a: {default: false}")
        )
        assert lines(program)[:2] == ["g = grad when a", "g = -grad when not a"]

    def test_an_inner_choice_gets_a_name(self, tmp_path):
        update = "param = param - lr*sqrt(where(a, grad, param))"
        program = select_options(typed(tmp_path, update, options="a: {default: false}"))
        assert lines(program) == [
            "grad_or_param = grad when a",
            "grad_or_param = param when not a",
            "param = param - round(lr)*sqrt(grad_or_param)",
        ]

    def test_choices_nest(self, tmp_path):
        update = "g = where(a, where(b, grad, -grad), 2*grad)\nparam = param - lr*g"
        program = select_options(typed(tmp_path, update, options=AB))
        assert lines(program)[:3] == [
            "g = grad when a and b",
            "g = -grad when a and not b",
            "g = round(2)*grad when not a",
        ]

    def test_a_choice_at_run_time_stays(self, tmp_path):
        program = select_options(typed(tmp_path, "param = where(grad > 0, param, -param) - lr*grad"))
        assert lines(program) == ["param = where(grad > round(0), param, -param) - round(lr)*grad"]


class TestSingleAssignment:
    def test_buffers_keep_their_old_value_under_their_name(self, tmp_path):
        program = single_assignment(
            typed(tmp_path, "m = 0.9*m + grad\nm = m + 1\nparam = param - lr*m", state="m: {init: 0}")
        )
        assert lines(program) == [
            "m_new = stored(m, round(0.9)*m + grad)",
            "m_new_2 = stored(m, m_new + round(1))",
            "param_new = stored(param, param - round(lr)*m_new_2)",
        ]
        assert [(r.buffer, r.name) for r in program.results] == [("param", "param_new"), ("m", "m_new_2")]

    def test_a_guarded_assignment_copies_the_old_value_elsewhere(self, tmp_path):
        update = "- g = grad\n- {when: a, do: g = g + param}\n- param = param - lr*g"
        program = single_assignment(typed(tmp_path, update, options="a: {default: false}"))
        assert lines(program)[:3] == ["g = grad", "g_next = g + param when a", "g_next = g when not a"]

    def test_the_branches_of_one_equation_are_one_assignment(self, tmp_path):
        update = "g = grad\ng = where(a, g + param, -g)\nparam = param - lr*g"
        program = chain(
            typed(tmp_path, update, options="a: {default: false}"), select_options, single_assignment
        )
        assert lines(program)[1:3] == ["g_next = g + param when a", "g_next = -g when not a"]

    def test_new_names_avoid_those_of_the_spec(self, tmp_path):
        update = "m_new = grad\nm = 0.9*m + m_new\nparam = param - lr*m"
        program = single_assignment(typed(tmp_path, update, state="m: {init: 0}"))
        assert [s.target for s in program.statements] == ["m_new", "m_new_2", "param_new"]


class TestLowerPowers:
    @pytest.mark.parametrize(
        ("power", "expected"),
        [
            ("grad**1", ["grad"]),
            ("grad**2", ["grad*grad"]),
            ("grad**0", ["round(1)"]),
            ("grad**-1", ["round(1)/grad"]),
            ("grad**-2", ["round(1)/(grad*grad)"]),
            ("grad**3", ["grad*grad", "grad*grad_squared"]),
            ("grad**4", ["grad*grad", "grad_squared*grad_squared"]),
            ("grad**5", ["grad*grad", "grad_squared*grad_squared", "grad*grad_squared_squared"]),
        ],
    )
    def test_whole_powers_are_binary_powering(self, tmp_path, power, expected):
        program = lower_powers(typed(tmp_path, f"g = {power}\nparam = param - lr*g"))
        assert [line.split(" = ")[1] for line in lines(program)[:-1]] == expected

    def test_powers_of_scalars_stay(self, tmp_path):
        program = lower_powers(typed(tmp_path, "param = param - lr**t*grad"))
        assert lines(program) == ["param = param - round(ipow(lr, t))*grad"]

    def test_floor_division_and_remainder(self, tmp_path):
        program = lower_powers(typed(tmp_path, "param = param // 2 - lr*(grad % 3)"))
        assert lines(program) == [
            "param = floor(param/round(2)) - round(lr)*(grad - floor(grad/round(3))*round(3))"
        ]


class TestFoldConstants:
    @pytest.mark.parametrize(
        ("constant", "value"),
        [
            ("1/49*49", 1 / 49 * 49),
            ("0.1 + 0.2", 0.1 + 0.2),
            ("0.9 - 0.8 - 0.1", 0.9 - 0.8 - 0.1),
            ("3**30", 205891132094649.0),
            ("sqrt(2)", 2**0.5),
            ("10**20", 1e20),
            ("2**-2", 0.25),
            ("-(-1)", 1.0),
        ],
    )
    def test_in_float64_and_in_written_order(self, tmp_path, constant, value):
        program = fold_constants(typed(tmp_path, f"param = param - lr*({constant})*grad"))
        numbers = [node.value for node in walk(program.statements[0].value) if isinstance(node, Number)]
        assert numbers == [value]

    def test_nothing_is_regrouped(self, tmp_path):
        program = fold_constants(typed(tmp_path, "param = param - lr*2*grad*3 - 0*grad + grad - grad"))
        assert lines(program) == ["param = param - round(lr*2)*grad*round(3) - round(0)*grad + grad - grad"]


class TestShare:
    def test_the_largest_common_expression_is_named(self, tmp_path):
        update = "u = sqrt(grad*param) + 1\nparam = param - lr*u/(sqrt(grad*param) + 2)"
        program = chain(typed(tmp_path, update), single_assignment, share)
        assert lines(program)[:2] == [
            "sqrt_grad_times_param = sqrt(grad*param)",
            "u = sqrt_grad_times_param + round(1)",
        ]

    def test_a_temporary_of_the_spec_is_reused(self, tmp_path):
        update = "u = grad*grad\nparam = param - lr*u/(grad*grad + 1)"
        program = chain(typed(tmp_path, update), single_assignment, share)
        assert lines(program)[0] == "u = grad*grad"
        assert "grad*grad" not in lines(program)[1]

    def test_order_of_operands_matters(self, tmp_path):
        update = "u = grad*param\nparam = param - lr*u/(param*grad + 1)"
        program = chain(typed(tmp_path, update), single_assignment, share)
        assert "param*grad" in lines(program)[1]

    def test_values_on_either_side_of_an_assignment_differ(self, tmp_path):
        update = "u = m*grad\nm = m + 1\nparam = param - lr*(u + m*grad)"
        program = chain(typed(tmp_path, update, state="m: {init: 0}"), single_assignment, share)
        assert lines(program)[2] == "param_new = stored(param, param - round(lr)*(u + m_new*grad))"

    def test_a_shared_value_exists_wherever_it_is_used(self, tmp_path):
        update = """
        - {when: a, do: m = m + sqrt(grad*grad + 1)}
        - {when: b, do: n = n - sqrt(grad*grad + 1)}
        - param = param - lr*grad
        """
        program = chain(
            typed(tmp_path, update, options=AB, state="m: {init: 0, when: a}\nn: {init: 0, when: b}"),
            select_options,
            single_assignment,
            share,
        )
        shared = next(s for s in program.statements if expression_text(s.value).startswith("sqrt"))
        assert shared.guard.text() in ("a or b", "b or a")


class TestEliminateDead:
    def test_unused_values_go(self, tmp_path):
        update = "u = where(a, grad*grad, grad)\nv = u + 1\nw = v*2\nparam = param - lr*u"
        program = chain(
            typed(tmp_path, update, options="a: {default: false}"),
            select_options,
            single_assignment,
            eliminate_dead,
        )
        assert [s.target for s in program.statements] == ["u", "u", "param_new"]

    def test_a_value_used_under_one_setting_exists_only_there(self, tmp_path):
        update = "u = grad*grad\nparam = param - lr*where(a, u, grad)"
        program = chain(
            typed(tmp_path, update, options="a: {default: false}"),
            select_options,
            single_assignment,
            eliminate_dead,
        )
        assert lines(program)[0] == "u = grad*grad when a"


class TestSchedule:
    def test_scalars_are_hoisted_whole(self, tmp_path):
        unit = compiled(
            tmp_path,
            "param = param - lr*sqrt(1 - b**t)/(1 - b)*grad",
            hyperparameters="lr: {default: 1}\nb: {default: 0.9}",
        )
        assert [expression_text(s.value) for s in unit.schedule.host] == ["lr*sqrt(1 - ipow(b, t))/(1 - b)"]
        assert len(unit.schedule.table) == 1

    def test_each_buffer_is_read_and_written_once(self, tmp_path):
        unit = compiled(
            tmp_path, "m = m + grad*grad\nm = m*grad\nparam = param - lr*m*m", state="m: {init: 0}\n"
        )
        (sweep,) = unit.schedule.passes
        assert [load.buffer for load in sweep.loads] == ["param", "grad", "m"]
        assert [store.buffer for store in sweep.stores] == ["param", "m"]

    def test_a_buffer_that_is_overwritten_is_not_read(self, tmp_path):
        unit = compiled(tmp_path, "m = grad\nparam = param - lr*m", state="m: {init: 0}")
        (sweep,) = unit.schedule.passes
        assert [load.buffer for load in sweep.loads] == ["param", "grad"]

    def test_scalar_conditions_enter_the_table(self, tmp_path):
        unit = compiled(tmp_path, "param = param - lr*where(t == 1, grad, -grad)")
        assert [column.name for column in unit.schedule.table] == ["lr", "t_equals_one"]

    def test_scalar_state_stays_on_the_host(self, tmp_path):
        unit = compiled(
            tmp_path, "p = p*0.9\nparam = param - lr/(1 - p)*grad", state="p: {init: 1, shape: scalar}"
        )
        assert [(r.buffer, r.name) for r in unit.schedule.scalar_results] == [("p", "p_new")]
        assert unit.schedule.buffers == ("param", "grad")
