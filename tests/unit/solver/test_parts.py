"""What is no net, or no output or loss of one, is refused by name and not with a traceback of ours."""

from __future__ import annotations

import os

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from solvergen.solver import SolverParameters
from solvergen.solver.net.dense import DenseNet, InnerProduct
from solvergen.solver.net.protocol import Blob, LayerBlobs, Output
from solvergen.solver.scoring import measure, score
from solvergen.solver.training.events import Collected, Warned
from solvergen.solver.training.solver import Solver

DATA, GRADIENT = np.zeros(3, np.float32), np.zeros(3, np.float32)


class Scripted:
    """A net that says of itself what it is told to."""

    def __init__(self, **told):
        self.name = "scripted"
        blob = Blob("w", np.zeros(3, np.float32), np.zeros(3, np.float32), layer="ip")
        self.learnable = (blob,)
        self.layers = (LayerBlobs("ip", "InnerProduct", (blob,)),)
        self.loss = 1.0
        self.made = lambda: (Output("loss", np.array(1, np.float32), 1.0),)
        vars(self).update(told)

    def clear_diffs(self):
        pass

    def forward(self):
        return self.made()

    outputs = forward

    def forward_backward(self):
        return self.loss


def make(net, tests=(), *, log=None, **more):
    settings = {"base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "max_iter": 3, "momentum": 0.9}
    return Solver(SolverParameters(**{**settings, **more}), net, tests, backend="numpy", log=log)


@pytest.mark.parametrize("learnable", [None, 5, "abc", {"w": 1}, iter(()), [np.zeros(3)], [None]])
def test_what_is_learnable(learnable):
    with pytest.raises(SolvergenError, match="learnable"):
        make(Scripted(learnable=learnable))


@pytest.mark.parametrize("layers", [None, [1], iter(())])
def test_layers(layers):
    with pytest.raises(SolvergenError, match="layers of the net 'scripted'"):
        make(Scripted(layers=layers))


def test_a_name_is_text():
    with pytest.raises(SolvergenError, match="must be text"):
        make(Scripted(name=None))


def test_a_class_is_no_net():
    class Whole(Scripted):
        name, learnable, layers = "class", (), ()

    with pytest.raises(SolvergenError, match="it is a class"):
        make(Whole)


@pytest.mark.parametrize("which", ["lr_mult", "decay_mult"])
def test_layers_must_agree_on_what_they_share(which):
    one, other = Blob("w", DATA, GRADIENT), Blob("w", DATA, GRADIENT, **{which: 2.0})
    layers = (LayerBlobs("a", "X", (one,)), LayerBlobs("b", "X", (other,)))
    with pytest.raises(SolvergenError, match=f"'b' uses the parameter 'w' with {which} 2.0"):
        make(Scripted(learnable=(one,), layers=layers))


@pytest.mark.parametrize("loss", [None, "one", np.zeros(2), 1j])
def test_a_loss_is_a_number(loss):
    solver = make(Scripted(loss=loss))
    with pytest.raises(SolvergenError, match="must return the loss, a number"):
        solver.step(1)
    assert solver.iter == 0


@pytest.mark.parametrize("loss", [float("nan"), float("inf"), np.float16(1), np.array(2.0)])
def test_any_number_is(loss):
    solver = make(Scripted(loss=loss), average_loss=3)
    solver.step(2)
    np.testing.assert_equal(solver.smoothed_loss, float(loss))


@pytest.mark.parametrize(
    "outputs", [None, 5, [1.0], [("a", 1)], (Output("a", None),), (Output("a", "x"),), (Output("a", 1j),)]
)
def test_outputs(outputs):
    net = Scripted(made=lambda: outputs)
    with pytest.raises(SolvergenError, match="the net 'scripted'"):
        make(net, display=1, log=Collected()).step(1)
    with pytest.raises(SolvergenError, match="the net 'scripted'"):
        make(Scripted(), [net], test_iter=(1,), test_interval=1).test()
    with pytest.raises(SolvergenError, match="the net 'scripted'"):
        score(net, 1, lambda *_: None)


def test_outputs_that_change_have_no_mean():
    for later in [np.zeros(2)], [np.zeros(3), np.zeros(3)], []:
        batches = iter([[np.zeros(3)], later] * 2)
        net = Scripted(made=lambda batches=batches: tuple(Output("a", array) for array in next(batches)))
        with pytest.raises(SolvergenError, match="the same outputs"):
            make(Scripted(), [net], test_iter=(2,), test_interval=1).test()
        with pytest.raises(SolvergenError, match="the same outputs"):
            score(net, 2, lambda *_: None)


def test_plain_numbers_have_a_mean():
    numbers = iter([1, 0.5])
    net = Scripted(made=lambda: (Output("a", next(numbers)),))
    (value,) = make(Scripted(), [net], test_iter=(2,), test_interval=1).test()
    assert value.value == 0.75


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"tests": Scripted()}, "test_nets must be a list"),
        ({"log": 5}, "log must be a listener"),
    ],
)
def test_other_parts(arguments, said):
    with pytest.raises(SolvergenError, match=said):
        make(Scripted(), **arguments)


def test_an_action_is_an_action():
    solver = make(Scripted())
    solver.set_action_function(lambda: "stop")
    with pytest.raises(SolvergenError, match="must return an Action"):
        solver.step(1)


# What is refused before anything is trained.


@pytest.mark.parametrize("prefix", [None, "", "no/such/folder/s"])
def test_a_snapshot_that_could_not_be_written_after_training(prefix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    solver = make(Scripted(), snapshot_prefix=prefix)
    with pytest.raises(SolvergenError, match="snapshot_prefix"):
        solver.solve()
    assert solver.iter == 0
    make(Scripted(), snapshot_prefix=prefix, snapshot_after_train=False).solve()


def test_a_negative_interval_doesnt_lose_the_last_snapshot(tmp_path):
    solver = make(Scripted(), snapshot=-3, snapshot_prefix=f"{tmp_path}/s")
    solver.solve()
    assert sorted(os.listdir(tmp_path)) == ["s_iter_3.caffemodel", "s_iter_3.solverstate"]


def test_a_state_past_max_iter_is_said(tmp_path):
    first = make(Scripted(), snapshot_prefix=f"{tmp_path}/s")
    first.step(5)
    log = Collected()
    solver = make(Scripted(), snapshot_prefix=f"{tmp_path}/s", log=log)
    solver.solve(resume=first.snapshot()[1])
    assert solver.iter == 5
    assert any("nothing is left to train" in e.text for e in log.events if isinstance(e, Warned))


# Test nets.


def dense(width=4, seed=0, dtype=np.float32):
    x = np.arange(24.0).reshape(6, 4)
    return DenseNet(x, x[:, :2], [InnerProduct("a", width), InnerProduct("b", 2)], batch_size=2, dtype=dtype)


@pytest.mark.parametrize(("other", "what"), [({"width": 5}, "shape"), ({"dtype": np.float64}, "dtype")])
def test_a_test_net_must_be_made_as_the_train_net(other, what):
    with pytest.raises(SolvergenError, match=f"'a.weights' has the {what} .* in a test net"):
        make(dense(), [dense(**other)], test_iter=(1,), test_interval=1)


def test_a_test_net_with_weights_of_its_own_is_said():
    log = Collected()
    make(Scripted(), [Scripted()], test_iter=(1,), test_interval=1, log=log)
    assert any("test net 0 has its own w" in e.text for e in log.events if isinstance(e, Warned))
    log = Collected()
    make(dense(), [dense()], test_iter=(1,), test_interval=1, log=log)
    assert not any("its own" in e.text for e in log.events if isinstance(e, Warned))


# Rates.


def test_rates_have_the_type_of_the_net():
    settings = {"lr_policy": "exp", "base_lr": 0.1, "gamma": 0.9}
    base, gamma = float(np.float32(0.1)), float(np.float32(0.9))
    for dtype in (np.float32, np.float64):
        solver = make(dense(dtype=dtype), **settings)
        solver.step(3)
        assert solver.lr == float(dtype(base * gamma**3))


def test_a_double_net_is_trained_by_double_rates():
    """One step from gradient 1, by hand."""
    blob = Blob("w", np.zeros(3), np.ones(3))
    net = Scripted(learnable=(blob,), layers=(LayerBlobs("ip", "X", (blob,)),))
    solver = make(net, lr_policy="inv", gamma=0.3, power=0.75, momentum=0.0)
    solver.step(1)
    before = blob.data.copy()
    solver.step(1)
    base, gamma = float(np.float32(0.1)), float(np.float32(0.3))
    rate = base * (1 + gamma) ** -0.75
    np.testing.assert_array_equal(blob.data, before - rate)
    assert rate != float(np.float32(rate))


def test_an_endless_threshold_never_clips():
    log = Collected()
    solver = make(Scripted(), clip_gradients=float("inf"), momentum=0.0, log=log)
    solver.net.learnable[0].diff.fill(2)
    solver.apply_update()
    np.testing.assert_array_equal(solver.net.learnable[0].data, -np.float32(0.1) * 2)


def test_a_plateau_after_an_infinite_loss():
    solver = make(Scripted(), lr_policy="plateau", policy={"patience": 0, "factor": 0.5})
    for loss in (float("inf"), 3.0, 2.0, 1.0):
        solver.net.loss = loss
        solver.step(1)
    assert solver.lr == solver.param.base_lr


# Resuming with other parts.


def test_a_position_of_other_data_is_said(tmp_path):
    more = {"snapshot_format": "SAFETENSORS", "snapshot_prefix": f"{tmp_path}/s"}
    first = make(dense(), **more)
    first.step(1)
    _, state = first.snapshot()
    net, log = dense(), Collected()

    def seek(position):
        raise KeyError("seed")

    net.seek = seek
    second = make(net, **more, log=log)
    second.restore(state)
    assert second.iter == 1
    assert any("batches begin anew" in e.text for e in log.events if isinstance(e, Warned))


def test_a_plateau_that_the_file_doesnt_hold_is_said(tmp_path):
    for form, said in (("BINARYPROTO", True), ("SAFETENSORS", False)):
        more = {"lr_policy": "plateau", "snapshot_format": form, "snapshot_prefix": f"{tmp_path}/s"}
        first = make(Scripted(), **more)
        first.step(1)
        _, state = first.snapshot()
        log = Collected()
        make(Scripted(), **more, log=log).restore(state)
        texts = [e.text for e in log.events if isinstance(e, Warned)]
        assert any("no state of lr_policy 'plateau'" in text for text in texts) is said


@pytest.mark.parametrize(("window", "kept"), [(3, True), (2, False), (4, False), (9, False)])
def test_another_window_of_losses_begins_anew(tmp_path, window, kept):
    """By a window that isn't what the state was written with, the oldest loss can't be told."""
    more = {"snapshot_format": "SAFETENSORS", "snapshot_prefix": f"{tmp_path}/s"}
    first = make(Scripted(), average_loss=3, **more)
    first.on_start(lambda s: setattr(s.net, "loss", float(s.iter)))
    first.step(4)
    second = make(Scripted(loss=4.0), average_loss=window, **more)
    second.restore(first.snapshot()[1])
    second.step(1)
    assert second.smoothed_loss == (3.0 if kept else 4.0)


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            {"keep_batches": lambda x: None, "pass_again": lambda: 0.0},
            r"is called as keep_batches\(\): missing",
        ),
        ({"seek": lambda: None, "position": lambda: 0}, r"is called as seek\(position\): too many"),
        ({"watch": 5, "watched": lambda: ()}, "watch of a Scripted is an int"),
    ],
)
def test_methods_that_cant_be_called_as_they_will_be(told, says):
    with pytest.raises(SolvergenError, match=says):
        make(Scripted(**told))


@pytest.mark.parametrize("found", [None, [("a", 1)], 5])
def test_notes_that_arent(found):
    watched: list[object] = []
    net = Scripted(watch=watched.append, watched=lambda: found)
    with pytest.raises(SolvergenError, match=r"watched\(\) of the net 'scripted' must return LayerPass"):
        make(net, debug_info=True, display=1, log=Collected()).step(1)
    assert watched == ["magnitudes", None]  # nobody goes on noting after an error
    with pytest.raises(SolvergenError, match=r"watched\(\) of the net"):
        measure(make(net), 1)


def test_what_a_snapshot_cant_hold_is_told_before_the_training(tmp_path):
    told = {"position": object, "seek": lambda position: None}
    solver = make(Scripted(**told), snapshot_prefix=str(tmp_path / "s"), snapshot_format="SAFETENSORS")
    with pytest.raises(SolvergenError, match=r"what a net says of itself: extra\['data'\]"):
        solver.solve()
    assert solver.iter == 0


@pytest.mark.parametrize(
    ("data", "diff", "said"),
    [
        ([1.0, 2.0], np.zeros(2, np.float32), "data of 'w' of the net 'scripted' is a list, not an array"),
        (np.zeros(2, np.float32), None, "diff of 'w' of the net 'scripted' is a NoneType, not an array"),
        (
            np.zeros(3, np.float32),
            np.zeros((3, 1), np.float32),
            r"has the shape \(3,\), and its diff \(3, 1\)",
        ),
        (np.zeros((2, 3), np.float32).T, np.zeros((3, 2), np.float32), "'w' is not C-contiguous"),
    ],
)
def test_parameters_are_arrays(data, diff, said):
    with pytest.raises(SolvergenError, match=said):
        make(Scripted(learnable=(Blob("w", data, diff),), layers=()))


def test_a_net_for_tests_needs_no_gradients():
    net = Scripted(learnable=(Blob("w", np.zeros(3, np.float32), None),), layers=())
    assert make(Scripted(), [net], test_iter=(1,), test_interval=1).test()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(
    "values",
    [
        np.arange(6, dtype=np.float32)[::-1],
        np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
        np.arange(6, dtype=">f4"),
        lambda: np.matrix([[1.0, 2.0, 3.0]]),  # it warns
        np.broadcast_to(np.float32(2), (4,)),
        np.frombuffer(bytes(range(1, 14)), np.uint8)[1:].view(np.float32),
        np.array([True, False]),
        np.zeros(0, np.float32),
    ],
    ids=["reversed", "columns first", "swapped", "matrix", "broadcast", "misaligned", "bool", "empty"],
)
def test_outputs_of_any_layout_have_means(values):
    values = values() if callable(values) else values
    net = Scripted(made=lambda: (Output("a", values),))
    wanted = np.asarray(values).ravel().astype(np.float64).tolist()
    told = make(Scripted(), [net], test_iter=(2,), test_interval=1).test()
    assert [one.value for one in told] == wanted
    assert [one.value for one in score(net, 2, lambda *_: None).outputs] == wanted


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.ma.masked_array([1.0, 2.0], [False, True]), "is a masked array"),
        (np.zeros(2, [("a", np.float32)]), "must be numbers"),
        (np.zeros(2, "V2"), "must be numbers"),
    ],
    ids=["masked", "records", "void"],
)
def test_outputs_that_are_no_numbers(values, said):
    net = Scripted(made=lambda: (Output("a", values),))
    with pytest.raises(SolvergenError, match=said):
        make(Scripted(), [net], test_iter=(2,), test_interval=1).test()
    with pytest.raises(SolvergenError, match=said):
        score(net, 2, lambda *_: None)
