"""Rules that evaluate the gradient again: where they are cut, what is carried, when state is stored."""

from __future__ import annotations

from tests.support.rules import compiled


def plan(tmp_path, update, **sections):
    return compiled(tmp_path, update, **sections).schedule


def reads(sweep):
    return {load.buffer for load in sweep.loads}


def writes(sweep):
    return {store.buffer for store in sweep.stores}


def test_heun_is_two_passes_that_carry_the_start_and_the_slope(tmp_path):
    schedule = plan(
        tmp_path,
        """
        before = param
        slope = grad
        param = param - lr*grad
        gradient
        param = before - lr/2*(slope + grad)
        """,
    )
    assert schedule.evaluations == (1,)
    assert schedule.carried == ("param_before", "grad_before")
    first, second = schedule.passes
    assert reads(first) == {"param", "grad"}
    assert writes(first) == {"param", "param_before", "grad_before"}
    assert reads(second) == {"grad", "param_before", "grad_before"}
    assert writes(second) == {"param"}


def test_what_the_parameter_holds_isnt_carried_beside_it(tmp_path):
    schedule = plan(
        tmp_path,
        """
        step = lr*grad
        param = param - step
        gradient
        param = param - (lr/2*grad - step/2)
        """,
    )
    assert schedule.carried == ("param_before", "step")
    assert reads(schedule.passes[1]) == {"param", "grad", "step"}


def test_state_is_stored_after_the_last_evaluation(tmp_path):
    schedule = plan(
        tmp_path,
        """
        m = 0.9*m + grad
        param = param - lr*m
        gradient
        param = param - lr*(grad + m)
        """,
        state="m: {init: 0}",
    )
    first, second = schedule.passes
    assert "m" not in writes(first)
    assert writes(second) == {"param", "m"}
    assert "m_new" in schedule.carried


def test_a_reduction_between_cuts_its_own_piece(tmp_path):
    schedule = plan(
        tmp_path,
        """
        before = param
        param = param + 0.05/(norm2(grad, all) + 1e-12)*grad
        gradient
        param = before - lr*grad
        """,
    )
    assert len(schedule.passes) == 3
    assert schedule.evaluations == (2,)
    assert reads(schedule.passes[2]) == {"grad", "param_before"}


def test_the_gradient_at_the_first_parameters_once_more(tmp_path):
    schedule = plan(
        tmp_path,
        """
        before = param
        param = param - lr*grad
        gradient
        other = grad
        param = before
        gradient
        param = before - lr*(grad + other)
        """,
    )
    assert schedule.evaluations == (1, 2)
    assert writes(schedule.passes[1]) == {"param", "grad_new"}
    assert reads(schedule.passes[1]) == {"grad", "param_before"}


def test_each_evaluation_is_one_though_they_look_the_same(tmp_path):
    schedule = plan(
        tmp_path,
        """
        first = grad
        gradient
        second = grad
        gradient
        param = param - lr*(first + second + grad)
        """,
    )
    assert schedule.evaluations == (1, 2)


def test_a_scalar_of_before_is_read_after(tmp_path):
    schedule = plan(
        tmp_path,
        """
        n = norm2(grad)
        param = param - lr*grad
        gradient
        param = param - lr*n/norm2(grad)*grad
        """,
    )
    assert schedule.evaluations == (1,)
    assert [stage.number for stage in schedule.stages] == [1, 2]
    assert len(schedule.passes) == 3


def test_what_hangs_on_the_parameter_alone_is_formed_again(tmp_path):
    schedule = plan(
        tmp_path,
        """
        shrunk = (1 - lr*0.5)*param
        param = shrunk - lr*grad
        gradient
        param = shrunk - lr*grad
        """,
    )
    assert schedule.carried == ("param_before",)
    assert reads(schedule.passes[1]) == {"grad", "param_before"}
    assert schedule.passes[1].body[0].target == "shrunk"


def test_what_hangs_on_more_is_carried(tmp_path):
    schedule = plan(
        tmp_path,
        """
        mixed = param*grad
        param = param - lr*grad
        gradient
        param = mixed - lr*grad
        """,
    )
    assert schedule.carried == ("param_before", "mixed")


def test_a_gradient_that_nothing_reads_is_evaluated_all_the_same(tmp_path):
    schedule = plan(
        tmp_path,
        """
        param = param - lr*grad
        gradient
        unread = grad
        """,
    )
    assert schedule.evaluations == (1,)
    assert writes(schedule.passes[1]) == set()


def test_states_of_the_device_are_written_after_the_last_evaluation(tmp_path):
    schedule = plan(
        tmp_path,
        """
        before = param
        n = n + norm2(grad)
        param = param - lr/n*grad
        gradient
        param = before - lr/n*grad
        """,
        state="n: {init: 0, shape: scalar}",
    )
    assert schedule.evaluations == (2,)
    assert [stage.number for stage in schedule.stages if stage.results] == [3]


def test_a_gradient_that_is_read_under_some_options_alone(tmp_path):
    schedule = plan(
        tmp_path,
        """
        before = param
        param = param - lr*grad
        gradient
        second = where(twice, grad, before)
        param = before - lr*second
        gradient
        param = param - lr*(grad + second)
        """,
        options="twice: {default: true}",
    )
    assert schedule.evaluations == (1, 2)
    assert "param" in writes(schedule.passes[0])
    (stored,) = (store for store in schedule.passes[0].stores if store.buffer == "param")
    assert stored.guard.is_always
