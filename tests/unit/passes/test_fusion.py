"""The planner: how many passes, what each reads and writes, and where reductions and stores go."""

from __future__ import annotations

import pytest

from tests.support.rules import compiled


def plan(tmp_path, update, **sections):
    return compiled(tmp_path, update, **sections).schedule


def reads(sweep, **options):
    return [load.buffer for load in sweep.loads if load.guard.holds(options)]


def writes(sweep, **options):
    return [store.buffer for store in sweep.stores if store.guard.holds(options)]


def reductions(sweep):
    return [r.name for r in sweep.reductions]


def test_an_elementwise_rule_is_one_pass_without_stages(tmp_path):
    schedule = plan(tmp_path, "m = 0.9*m + grad\nparam = param - lr*m", state="m: {init: 0}")
    assert len(schedule.passes) == 1
    assert not schedule.is_staged


def test_lamb_is_two_passes_and_stores_states_in_the_first(tmp_path):
    schedule = plan(
        tmp_path,
        """
        m = 0.9*m + 0.1*grad
        v = 0.99*v + 0.01*grad**2
        u = m/(sqrt(v) + 1e-6)
        param = param - lr*norm2(param)/norm2(u)*u
        """,
        state="m: {init: 0}\nv: {init: 0}",
    )
    first, second = schedule.passes
    assert reads(first) == ["param", "grad", "m", "v"]
    assert writes(first) == ["m", "v"]
    assert reads(second) == ["param", "m", "v"]  # not the gradient: the new states say it all
    assert writes(second) == ["param"]
    assert reductions(first) == ["norm2_param", "norm2_u"]
    assert [stage.number for stage in schedule.stages] == [1]
    assert "norm2_u must be complete first" in second.reason


def test_what_is_wanted_late_is_reduced_where_its_buffer_is_read_anyway(tmp_path):
    # norm2(param) is known at once, but only the second pass reads param.
    schedule = plan(
        tmp_path,
        """
        g = grad/max(norm2(grad), 1)
        u = norm2(param)*g
        s = norm2(u)
        param = param - lr*s*u
        """,
    )
    assert [reads(sweep) for sweep in schedule.passes] == [["param", "grad"], ["grad"], ["param", "grad"]]
    schedule = plan(
        tmp_path,
        """
        g = grad/max(norm2(grad), 1)
        u = g + param
        param = param - lr*norm2(param)/norm2(u)*u
        """,
    )
    assert [reads(sweep) for sweep in schedule.passes] == [["grad"], ["param", "grad"], ["param", "grad"]]
    assert reductions(schedule.passes[1]) == ["norm2_param", "norm2_u"]


def test_a_buffer_whose_old_value_is_wanted_later_is_stored_later(tmp_path):
    schedule = plan(
        tmp_path,
        """
        change = m
        m = 0.9*m + grad
        s = norm2(m)
        param = param - lr*s*(m - change)
        """,
        state="m: {init: 0}",
    )
    first, second = schedule.passes
    assert writes(first) == []
    assert writes(second) == ["param", "m"]
    assert reads(second) == ["param", "grad", "m"]


def test_a_pass_that_an_option_calls_for_is_idle_without_it(tmp_path):
    schedule = plan(
        tmp_path,
        """
        scale = where(clipped, 1/max(norm2(grad, all), 1), 1)
        param = param - lr*scale*grad
        """,
        options="clipped: {default: false}",
    )
    first, second = schedule.passes
    assert first.activity(("clipped",)).text() == "clipped"
    assert second.activity(("clipped",)).is_always
    assert reads(first, clipped=True) == ["grad"]
    assert reads(first, clipped=False) == []


def test_one_reduction_that_two_values_want_is_formed_once(tmp_path):
    schedule = plan(
        tmp_path,
        """
        a = norm2(grad)
        b = norm2(grad) + 1
        param = param - lr*a/b*grad
        """,
    )
    assert [len(sweep.reductions) for sweep in schedule.passes] == [1, 0]


def test_reductions_that_hang_on_one_another_take_a_pass_each(tmp_path):
    schedule = plan(
        tmp_path,
        """
        a = sum(grad)
        b = sum(a*grad)
        c = sum(b*grad)
        param = param - lr*c*grad
        """,
    )
    assert len(schedule.passes) == 4
    assert [stage.number for stage in schedule.stages] == [1, 2, 3]


def test_a_number_for_the_caller_costs_no_pass(tmp_path):
    schedule = plan(
        tmp_path,
        "size = norm2(grad)\nparam = param - lr*grad",
        state="size: {init: 0, shape: scalar, output: true}",
    )
    (sweep,) = schedule.passes
    assert reductions(sweep) == ["size_new"]
    (stage,) = schedule.stages
    assert stage.number == 1
    assert schedule.device_states == ("size",)


def test_scalar_state_of_the_host_stays_there(tmp_path):
    schedule = plan(
        tmp_path,
        "a = a*0.9\nb = b + norm2(grad)\nc = c + b\nparam = param - lr*a*c*grad",
        state="\n".join(f"{name}: {{init: 1, shape: scalar}}" for name in "abc"),
    )
    assert [result.buffer for result in schedule.scalar_results] == ["a"]
    assert schedule.device_states == ("b", "c")


def test_state_of_the_device_that_a_pass_reads_before_any_reduction(tmp_path):
    schedule = plan(
        tmp_path,
        "param = param - lr*d*grad\nd = max(d, norm2(param, all))",
        state="d: {init: 1, shape: shared}",
    )
    (sweep,) = schedule.passes
    assert [stage.number for stage in schedule.stages] == [0, 1]
    assert schedule.values[0].name in {name for s in sweep.body for name in _names(s.value)}
    assert schedule.stages[-1].results[0].buffer == "d"


def _names(expression):
    from solvergen.ir.nodes import names_in

    return names_in(expression)


@pytest.mark.parametrize("over", ["", ", all"])
def test_the_new_parameter_is_what_a_reduction_after_it_reads(tmp_path, over):
    schedule = plan(
        tmp_path,
        f"moved = norm2(param{over})\nparam = param - lr*grad\nleft = norm2(param{over})\nr = left - moved",
        state="r: {init: 0, shape: scalar, output: true}",
    )
    (sweep,) = schedule.passes
    assert [arg.name for r in sweep.reductions for arg in r.args] == ["param", "param_new"]


def test_many_results_still_plan_in_time(tmp_path):
    names = [f"s{i}" for i in range(12)]
    update = "\n".join(
        [
            "n = norm2(grad)",
            "k = norm2(n*grad)",
            *(f"{s} = {s} + k*grad" for s in names),
            f"param = param - lr*({' + '.join(names)})",
        ]
    )
    schedule = plan(tmp_path, update, state="\n".join(f"{s}: {{init: 0}}" for s in names))
    assert len(schedule.passes) == 3
    assert writes(schedule.passes[2]) == ["param", *names]


def test_where_an_option_leaves_nothing_to_reduce_states_are_stored_with_the_parameter(tmp_path):
    schedule = plan(
        tmp_path,
        """
        m = 0.9*m + 0.1*grad
        n = 0.99*n + 0.01*grad**2
        u = m/(sqrt(n) + 1e-6)
        u = where(adapt, norm2(param)/norm2(u)*u, u)
        param = param - lr*u
        """,
        state="m: {init: 0}\nn: {init: 0}",
        options="adapt: {default: true}",
    )
    first, second = schedule.passes
    assert writes(first, adapt=True) == ["m", "n"]
    assert writes(first, adapt=False) == []
    assert first.activity(("adapt",)).text() == "adapt"
    assert writes(second, adapt=True) == ["param"]
    assert writes(second, adapt=False) == ["param", "m", "n"]
    assert reads(second, adapt=True) == ["param", "m", "n"]
    assert reads(second, adapt=False) == ["param", "grad", "m", "n"]
