"""The order of events in the loop, and what the Solver does beside updates."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from solvergen.solver import SolverParameters
from solvergen.solver.net.protocol import Blob, LayerBlobs, Output
from solvergen.solver.training import events
from solvergen.solver.training.events import Action, Collected
from solvergen.solver.training.solver import Solver


class Tape:
    """A net that writes down what is done to it. Its loss is scripted."""

    def __init__(self, tape, losses=None, name="tape", test=False):
        self.name, self.tape, self.test = name, tape, test
        self.blob = Blob("w", np.zeros(3, np.float32), np.zeros(3, np.float32), layer="ip")
        self.learnable = (self.blob,)
        self.layers = (LayerBlobs("ip", "InnerProduct", (self.blob,)),)
        self.losses = iter(losses) if losses is not None else itertools.repeat(1.0)
        self.last = ()

    def clear_diffs(self):
        self.tape.append("clear")
        self.blob.diff.fill(0)

    def forward(self):
        self.tape.append("test" if self.test else "forward")
        self.last = (
            Output("accuracy", np.array([0.25, 0.75], np.float32)),
            Output("loss", np.array(next(self.losses), np.float32), 2.0),
        )
        return self.last

    def forward_backward(self):
        self.forward()
        self.tape[-1] = "pass"
        self.blob.diff += 1
        return float(self.last[1].values) * 2

    def outputs(self):
        return self.last


def make(tape, *, tests=0, losses=None, log=None, **params):
    nets = [Tape(tape, name=f"test{i}", test=True) for i in range(tests)]
    settings = {
        "base_lr": 0.5,
        "lr_policy": "fixed",
        "solver_mode": "CPU",
        "snapshot_after_train": False,
        "max_iter": 3,
        **params,
    }
    if tests:
        settings.setdefault("test_iter", (1,) * tests)
    return Solver(SolverParameters(**settings), Tape(tape, losses), nets, backend="numpy", log=log)


def taped(solver, tape):
    """The solver's events and callbacks on the same tape."""
    skipped = (events.Outputs, events.Updated)

    def listen(event):
        if not isinstance(event, skipped):
            tape.append(type(event).__name__)

    solver.add_listener(listen)
    for name in ("on_start", "on_gradients_ready", "on_update", "on_display", "on_test", "on_snapshot"):
        getattr(solver, name)(lambda s, name=name: tape.append(f"{name}@{s.iter}"))
    return solver


def test_an_iteration_in_caffes_order():
    tape = []
    solver = taped(make(tape, tests=1, test_interval=2, display=2, iter_size=2, clip_gradients=1.0), tape)
    solver.step(2)
    first = [
        "clear", "TestStarted", "test", "TestOutputs", "on_test@0", "on_start@0", "pass", "pass", "Iteration",
        "on_display@0", "on_gradients_ready@0", "RateUsed", "Clipped", "on_update@1",
    ]  # fmt: skip
    second = [
        "clear", "on_start@1", "pass", "pass", "on_gradients_ready@1", "RateUsed", "Clipped", "on_update@2",
    ]  # fmt: skip
    assert tape == first + second


def test_the_end_of_solve():
    tape = []
    solver = taped(make(tape, tests=1, test_interval=3, display=3, max_iter=3), tape)
    solver.solve()
    assert tape[0] == "Started"
    after = tape[tape.index("on_update@3") + 1 :]
    assert after == ["forward", "Iteration", "TestStarted", "test", "TestOutputs", "on_test@3", "Finished"]


def test_no_final_display_off_the_beat():
    tape = []
    make(tape, tests=1, test_interval=2, display=2, max_iter=3).solve()
    assert tape[-1] == "pass"


def test_without_test_initialization_the_first_test_waits():
    tape = []
    make(tape, tests=1, test_interval=2, test_initialization=False).step(3)
    assert tape == ["clear", "pass", "clear", "pass", "clear", "test", "pass"]


def test_snapshots_come_after_the_update_and_again_at_the_end(tmp_path):
    log = Collected()
    solver = make([], log=log, snapshot=2, snapshot_prefix=str(tmp_path / "s"), snapshot_after_train=True)
    solver.solve()
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "s_iter_2.caffemodel", "s_iter_2.solverstate", "s_iter_3.caffemodel", "s_iter_3.solverstate",
    ]  # fmt: skip
    said = [(e.iter, e.kind) for e in log.events if isinstance(e, events.Snapshotting)]
    assert said == [(2, "model"), (2, "state"), (3, "model"), (3, "state")]


def test_no_second_snapshot_where_the_interval_wrote_one(tmp_path):
    calls = []
    solver = make([], snapshot=3, snapshot_prefix=str(tmp_path / "s"), snapshot_after_train=True)
    solver.on_snapshot(lambda s: calls.append(s.iter))
    solver.solve()
    assert calls == [3]


def test_a_stop_snapshots_and_ends_before_display_and_test(tmp_path):
    tape = []
    solver = make(
        tape, tests=1, test_interval=2, display=2, test_initialization=False,
        snapshot_prefix=str(tmp_path / "s"), snapshot_after_train=True,
    )  # fmt: skip
    taped(solver, tape)
    answers = iter([Action.NONE, Action.STOP])
    solver.set_action_function(lambda: next(answers))
    solver.solve()
    assert solver.iter == 2
    assert tape[-3:] == ["Snapshotting", "on_snapshot@2", "EarlyStop"]


def test_the_action_function_is_asked_once_an_iteration_and_until_nothing_before_each_test_batch(tmp_path):
    answers = [Action.SNAPSHOT, Action.SNAPSHOT, Action.NONE, Action.NONE, Action.SNAPSHOT]
    asked = iter(answers)
    written = []
    solver = make(
        [], tests=1, test_iter=(2,), test_interval=5, snapshot_prefix=str(tmp_path / "s"), max_iter=1
    )
    solver.on_snapshot(lambda s: written.append(s.iter))
    solver.set_action_function(lambda: next(asked))
    solver.step(1)
    assert next(asked, None) is None
    assert written == [0, 0, 1]


def test_a_stop_in_a_test_comes_before_any_callback():
    tape = []
    solver = taped(make(tape, tests=2, test_interval=1), tape)
    answers = iter([Action.STOP])
    solver.set_action_function(lambda: next(answers, Action.NONE))
    solver.step(3)
    assert tape == ["clear", "TestStarted", "TestInterrupted"]
    assert solver.iter == 0
    solver.step(1)  # the request was about that call
    assert solver.iter == 1


def test_stop_from_a_callback():
    solver = make([], max_iter=100)
    solver.on_update(lambda s: s.stop() if s.iter == 5 else None)
    solver.solve()
    assert solver.iter == 5


def test_the_loss_shown_is_the_mean_of_the_passes_smoothed_anew_in_each_step():
    log = Collected()
    solver = make([], losses=[1, 3, 5, 7, 9, 11, 2, 4], log=log, iter_size=2, average_loss=2, display=1)
    solver.step(3)
    solver.step(1)
    shown = [(e.loss, e.smoothed) for e in log.events if isinstance(e, events.Iteration)]
    assert shown == [(4, 4), (12, 8), (20, 16), (6, 6)]


def test_outputs_are_counted_through_and_weighed():
    log = Collected()
    make([], log=log, tests=1, test_interval=1, test_iter=(4,), display=1, test_compute_loss=True).step(1)
    (train,) = [e for e in log.events if isinstance(e, events.Outputs)]
    assert [(v.index, v.name, v.value, v.loss_weight, v.loss) for v in train.values] == [
        (0, "accuracy", 0.25, 0.0, 0.0), (1, "accuracy", 0.75, 0.0, 0.0), (2, "loss", 1.0, 2.0, 2.0),
    ]  # fmt: skip
    (test,) = [e for e in log.events if isinstance(e, events.TestOutputs)]
    assert [v.value for v in test.values] == [0.25, 0.75, 1.0]
    assert test.loss == 2.0


def test_without_test_compute_loss_there_is_none():
    log = Collected()
    make([], log=log, tests=1, test_interval=1).step(1)
    (test,) = [e for e in log.events if isinstance(e, events.TestOutputs)]
    assert test.loss is None


def test_reading_the_rate_never_advances_it():
    solver = make([], lr_policy="multistep", gamma=0.1, stepvalue=(1, 1, 2), max_iter=10)
    read = []
    for _ in range(4):
        for _ in range(5):
            solver.lr  # noqa: B018
        read.append(solver.lr)
        solver.step(1)
    # One step an iteration, though two values are 1: the second waits.
    np.testing.assert_allclose(read, [0.5, 0.05, 0.005, 0.0005], rtol=1e-6)


def test_a_plateau_of_what_is_tested():
    solver = make(
        [], tests=1, test_interval=2, lr_policy="plateau",
        policy={"metric": "accuracy", "best": "max", "patience": 0, "factor": 0.5},
    )  # fmt: skip
    for _ in range(5):
        solver.test_all()  # by hand: not measured
    rates = []
    for _ in range(6):
        solver.step(1)
        rates.append(solver.lr)
    assert rates == [0.5, 0.5, 0.25, 0.25, 0.125, 0.125]


def test_apply_update_alone():
    """Caffe's own: weights 0, differences 1, inv at iteration 0."""
    solver = make(
        [], lr_policy="inv", base_lr=0.01, gamma=0.0001, power=0.75, momentum=0.9, weight_decay=0.0005
    )
    solver.net.blob.diff.fill(1)
    solver.apply_update()
    np.testing.assert_allclose(solver.net.blob.data, -0.01, atol=1e-7)
    assert solver.iter == 1


def test_debug_info_at_displays():
    log = Collected()
    solver = make([], log=log, display=2, debug_info=True)
    solver.net.blob.data[:] = [1, -2, 3]
    solver.step(2)
    (forward, backward) = [e for e in log.events if isinstance(e, events.DebugInfo)]
    assert (forward.phase, forward.layer, forward.name, forward.data) == ("forward", "ip", "w", 2.0)
    assert (backward.phase, backward.diff) == ("backward", 1.0)
    (norms,) = [e for e in log.events if isinstance(e, events.DebugNorms)]
    assert (norms.data_l1, norms.diff_l1) == (6.0, 3.0)
    np.testing.assert_allclose((norms.data_l2, norms.diff_l2), (14**0.5, 3**0.5))


def test_multipliers():
    solver = make([], weight_decay=0.5)
    blob = Blob("w", np.ones(3, np.float32), np.zeros(3, np.float32), 2.0, 0.0)
    other = Blob("v", np.ones(3, np.float32), np.zeros(3, np.float32), 0.0, 1.0)
    net = Tape([])
    net.learnable = (blob, other)
    solver = Solver(solver.param, net, backend="numpy")
    blob.diff.fill(1)
    other.diff.fill(1)
    solver.apply_update()
    np.testing.assert_array_equal(blob.data, 0)  # 1 - 2*0.5*1
    np.testing.assert_array_equal(other.data, 1)


@pytest.mark.parametrize(
    ("params", "tests", "said"),
    [
        ({"test_iter": (1, 1), "test_interval": 1}, 1, "test_iter has 2 entries"),
        ({"test_iter": (1,)}, 1, "test_interval"),
        ({"type": "AdaGrad", "momentum": 0.9}, 0, "momentum can't be used with AdaGrad"),
        ({"average_loss": 0}, 0, "average_loss"),
        ({"lr_policy": "nonsense"}, 0, "nonsense"),
    ],
)
def test_what_is_refused(params, tests, said):
    with pytest.raises(SolvergenError, match=said):
        make([], tests=tests, **params)


def test_what_is_no_net_is_refused():
    with pytest.raises(SolvergenError, match="isn't a net: it lacks name, learnable"):
        Solver(SolverParameters(base_lr=1, lr_policy="fixed", solver_mode="CPU"), object())


def test_an_error_in_a_callback_leaves_a_state_to_go_on_from():
    solver = make([])
    broken = [True]

    @solver.on_gradients_ready
    def _(s):
        if broken.pop() if broken else False:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        solver.step(2)
    assert solver.iter == 0
    solver.step(2)
    assert solver.iter == 2


@pytest.mark.parametrize("iterations", [2.5, "3", None])
def test_steps_are_whole_numbers(iterations):
    tape = []
    solver = make(tape)
    del tape[:]
    with pytest.raises(SolvergenError, match="whole number"):
        solver.step(iterations)
    assert tape == []
    assert solver.iter == 0


def test_losses_that_cease_to_be_numbers_are_warned_of_once():
    seen = Collected()
    nan, inf = float("nan"), float("inf")
    make([], losses=[1.0, nan, nan, 1.0, inf, nan], log=seen, max_iter=6).solve()
    warned = [(one.iter, one.text) for one in seen.events if isinstance(one, events.Warned)]
    told = [(at, text) for at, text in warned if "the loss of iteration" in text]
    assert [at for at, _ in told] == [1, 4]
    assert "the loss of iteration 1 is nan: " in told[0][1]
