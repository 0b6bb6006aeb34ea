"""The order of a step of kernels, and the arrays that it works on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvergen.errors import CompilerBug
from solvergen.runtime.backends.base import Step
from solvergen.runtime.backends.numpy import NumpyBackend
from solvergen.runtime.definition import Pass
from solvergen.runtime.workspace import HostWorkspace
from tests.support.handwritten import Adam
from tests.support.handwritten.staged import ALL, ClippedSGD, DistanceSGD, Lamb, NovoGrad
from tests.support.reductions import by_loops, larger

F = np.float32


class Recorded(HostWorkspace):
    """A workspace that notes what is called."""

    def __init__(self, definition, sizes, calls):
        super().__init__(definition, sizes)
        self.calls = calls

    def begin(self, total_size, leader):
        self.calls.append(("begin", total_size, leader))
        super().begin(total_size, leader)

    def combine(self, number):
        self.calls.append(("combine", number))
        super().combine(number)

    def commit(self):
        self.calls.append("commit")
        super().commit()


class RecordingLauncher:
    """A launcher that only notes what is called."""

    def __init__(self, plan, calls):
        self.plan, self.calls = plan, calls

    def bind(self, gradients):
        return all(gradient is not None for gradient in gradients)

    def finite(self):
        return True

    def release(self):
        pass

    def begin(self, step):
        assert isinstance(step, Step)
        self.step = step
        self.calls.append(("tables", self.plan.positions))

    def run_stage(self, number):
        self.calls.append(("stage", number, self.plan.positions))

    def run_pass(self, number):
        self.calls.append(("pass", number, self.plan.positions))


class RecordingBackend(NumpyBackend):
    table = "kernel"

    def __init__(self):
        self.calls, self.launchers = [], []

    def workspace(self, definition, params, blocks=None):
        self.made = Recorded(definition, [p.size for p in params], self.calls)
        return self.made

    def prepare(self, plan):
        assert plan.workspace is self.made
        self.launchers.append(RecordingLauncher(plan, self.calls))
        return self.launchers[-1]


def test_stages_and_passes_come_in_turn_over_all_launches():
    backend = RecordingBackend()
    params = [np.ones(3, F), np.ones(5), np.ones(7, F)]
    groups = [{"params": params[:1], "center": True}, {"params": params[1:]}]
    opt = ClippedSGD(groups, backend=backend)
    opt.step([np.ones_like(p) for p in params])
    assert backend.calls == [
        ("begin", 15.0, 0),
        ("tables", (0,)),
        ("tables", (1,)),
        ("tables", (2,)),
        ("pass", 0, (0,)),
        ("combine", 0),
        ("stage", 1, (0,)),
        ("pass", 1, (0,)),
        ("pass", 1, (1,)),
        ("pass", 1, (2,)),
        ("combine", 1),
        ("stage", 2, (0,)),
        ("stage", 2, (1,)),
        ("stage", 2, (2,)),
        ("pass", 2, (0,)),
        ("pass", 2, (1,)),
        ("pass", 2, (2,)),
        "commit",
    ]
    backend.calls.clear()
    opt.step([None, np.ones(5), np.ones(7, F)])
    # The pass that no launch has is left out, and what would combine its totals.
    assert ("begin", 12.0, 1) in backend.calls
    assert ("combine", 0) not in backend.calls


def test_reductions_of_tensors_combine_nothing():
    backend = RecordingBackend()
    Lamb(np.ones(3, F), backend=backend).step(np.ones(3, F))
    assert backend.calls == [
        ("begin", 3.0, 0),
        ("tables", (0,)),
        ("pass", 0, (0,)),
        ("stage", 1, (0,)),
        ("pass", 1, (0,)),
        "commit",
    ]


def test_a_stage_after_the_last_pass_and_one_before_the_first():
    class Both(Lamb):
        definition = replace(Lamb.definition, stages=(0, 1, 2), active_stages=lambda *, trust: (0, 2))

    backend = RecordingBackend()
    Both(np.ones(3, F), backend=backend).step(np.ones(3, F))
    assert [call[:2] for call in backend.calls if call[0] in ("stage", "pass")] == [
        ("stage", 0),
        ("pass", 0),
        ("pass", 1),
        ("stage", 2),
    ]


def test_launches_get_rows_of_both_tables():
    backend = RecordingBackend()
    params = [np.ones(3, F), np.ones(3), np.ones(3, F)]
    groups = [{"params": params[:2]}, {"params": params[2:], "lr": 0.25, "eps": 0.5}]
    opt = Lamb(groups, backend=backend)
    opt.step([np.ones_like(p) for p in params])
    single, double = backend.launchers
    assert single.plan.positions == (0, 2)
    assert double.plan.positions == (1,)
    assert single.step.wide[single.step.rows].tolist() == [[0.01], [0.25]]
    assert double.step.wide[double.step.rows].tolist() == [[0.01]]
    assert single.step.table.dtype == F
    assert double.step.table.dtype == np.float64
    assert single.step.table[single.step.rows][:, 6].tolist() == [F(1e-6), 0.5]
    kept = single.step.table, single.step.wide, single.step.rows
    opt.lr = 0.75
    opt.step([np.ones_like(p) for p in params])
    assert all(
        a is b for a, b in zip(kept, (single.step.table, single.step.wide, single.step.rows), strict=True)
    )
    assert single.step.wide[single.step.rows].tolist() == [[0.75], [0.75]]


def test_rules_without_such_scalars_have_a_table_all_the_same():
    class Plain(ClippedSGD):
        definition = replace(
            ClippedSGD.definition,
            wide=(),
            table=(),
            scalars=lambda *, lr, max_norm, clip, center, t: ((), (), {}),
        )

    backend = RecordingBackend()
    Plain(np.ones(3, F), backend=backend).step(np.ones(3, F))
    assert backend.launchers[0].step.wide.shape == (1, 1)
    assert backend.launchers[0].step.table.shape == (1, 1)


@pytest.mark.parametrize("failing", ["begin", "run_stage", "run_pass"])
def test_an_error_midway_leaves_counts_and_shared_states(failing):
    backend = RecordingBackend()
    opt = DistanceSGD([np.ones(3, F), np.ones(4)], backend=backend, d0=0.5)
    opt.step([np.ones(3, F), np.ones(4)])

    def broken(*arguments):
        backend.made.shared_new[...] = 99.0
        raise OSError("the GPU fell off")

    works = getattr(backend.launchers[1], failing)
    setattr(backend.launchers[1], failing, broken)
    with pytest.raises(OSError, match="fell off"):
        opt.step([np.ones(3, F), np.ones(4)])
    assert opt.t == 1
    assert dict(opt.shared) == {"d": 0.5, "steps": 0.0}
    setattr(backend.launchers[1], failing, works)
    opt.step([np.ones(3, F), np.ones(4)])
    assert opt.t == 2
    assert dict(opt.shared) == {"d": 0.5, "steps": 0.0}  # what the leader doesn't assign stays


def test_rows_of_shared_states_change_places():
    backend = RecordingBackend()
    opt = DistanceSGD(np.ones(3, F), backend=backend, d0=0.5)

    def assigning(number):
        assert backend.made.shared_now.tolist() == [0.5, 0.0]
        backend.made.shared_new[0] = 2.0

    opt.step(np.ones(3, F))
    backend.launchers[0].run_stage = assigning
    opt.step(np.ones(3, F))
    assert dict(opt.shared) == {"d": 2.0, "steps": 0.0}


def test_totals_are_zero_before_a_step_that_reduces_over_all():
    workspace = HostWorkspace(ClippedSGD.definition, [3, 4])
    workspace.totals[...] = 5.0
    workspace.begin(7.0, 1)
    assert not workspace.totals.any()
    assert (workspace.total_size, workspace.leader) == (7.0, 1)


def test_totals_over_all():
    definition = replace(
        ClippedSGD.definition,
        passes=(Pass(0, ("sum",), ("all",)), Pass(1, ("norm2", "max_abs", "mean"), ("tensor", "all", "all"))),
    )
    workspace = HostWorkspace(definition, [1] * 5000)
    workspace.totals[...] = np.random.default_rng(3).random((5000, 4))
    workspace.over_all[...] = -1.0
    workspace.combine(1)
    assert workspace.over_all.tolist() == [
        -1.0,
        -1.0,
        by_loops(workspace.totals[:, 2].tolist(), larger),
        by_loops(workspace.totals[:, 3].tolist()),
    ]


def test_states_go_in_and_come_out_as_copies():
    workspace = HostWorkspace(NovoGrad.definition, [3, 4])
    states, shared = workspace.read()
    assert (states.shape, shared.shape) == ((2, 2), (0,))
    workspace.write(np.array([[1.0, 2.0], [3.0, 4.0]]), np.zeros(0))
    states, _ = workspace.read()
    assert states.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    states[0, 0] = 9.0
    assert workspace.read()[0][0, 0] == 1.0
    with pytest.raises(CompilerBug):
        workspace.write(np.zeros((2, 1)), np.zeros(0))
    assert workspace.sizes.tolist() == [3.0, 4.0]
    assert workspace.values.shape == (2, 1)


def test_what_a_definition_says_of_itself():
    assert not Adam.definition.is_staged
    assert Adam.definition.passes == (Pass(),)
    assert Adam.definition.n_reductions == 0
    assert Adam.definition.active_passes(amsgrad=True) == (0,)
    assert Adam.definition.active_stages(amsgrad=True) == ()
    assert all(optimizer.definition.is_staged for optimizer in ALL)
    assert [o.definition.n_reductions for o in ALL] == [2, 2, 1, 2]
    assert [o.definition.reduces_over_all for o in ALL] == [False, True, False, True]
    assert NovoGrad.definition.scalar_states == ("mu_product",)
    assert NovoGrad.definition.all_scalar_states == ("v", "mu_product", "last")
    assert DistanceSGD.definition.shared_states == ("d", "steps")
    # Each sign of a staged rule is enough.
    for fields in (
        {"stages": (1,)},
        {"passes": (Pass(), Pass())},
        {"passes": (Pass(0, ("sum",), ("tensor",)),)},
    ):
        assert replace(Adam.definition, **fields).is_staged
