"""Optimizers that evaluate the gradient several times in a step: the same batch, at other parameters."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.optimizers import SAM, Heun
from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters
from solvergen.solver.net.error import NetError
from solvergen.solver.training.error import TrainingError

RNG = np.random.default_rng(3)
X = RNG.standard_normal((24, 5))
Y = RNG.standard_normal((24, 2))
EVALUATING = ["SAM", "Heun", "Extragradient", "RK23", "RK45Adaptive"]


def dense(**more):
    layers = [InnerProduct("a", 4, "tanh"), InnerProduct("b", 2)]
    return DenseNet(X, Y, layers, batch_size=6, dtype=np.float64, **more)


def params(optimizer="SAM", **more):
    return SolverParameters(
        optimizer=optimizer, base_lr=0.0625, lr_policy="fixed", max_iter=10, solver_mode="CPU", **more
    )


def by_hand(net, cls, steps, **options):
    """The rule over the net's own arrays, its closure going back to the batch's first row."""
    optimizer = cls({blob.name: blob.data for blob in net.learnable}, backend="numpy", lr=0.0625, **options)
    for _ in range(steps):
        place = net.position()

        def closure(place=place):
            net.seek(place)
            net.clear_diffs()
            loss = net.forward_backward()
            return loss, {blob.name: blob.diff for blob in net.learnable}

        optimizer.step(closure)
    return [blob.data.copy() for blob in net.learnable]


@pytest.mark.parametrize("cls", [SAM, Heun])
@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_the_same_batch_is_seen_each_time(cls, backend):
    net = dense()
    Solver(params(cls.__name__), net, backend=backend).step(6)
    for mine, theirs in zip(net.learnable, by_hand(dense(), cls, 6), strict=True):
        np.testing.assert_array_equal(mine.data, theirs)
    assert net.position() == {"row": 6 * 6 % 24}


@pytest.mark.parametrize("name", EVALUATING)
def test_a_run_that_goes_on_from_a_snapshot_ends_with_the_same_bits(tmp_path, name):
    def solver(net):
        of = params(name, snapshot_prefix=str(tmp_path / "s"), snapshot_format="SAFETENSORS")
        return Solver(of, net, backend="numpy")

    whole = dense()
    solver(whole).step(7)
    first = solver(dense())
    first.step(4)
    _, state = first.snapshot()
    other = dense()
    second = solver(other)
    second.restore(state)
    second.step(3)
    for mine, theirs in zip(other.learnable, whole.learnable, strict=True):
        np.testing.assert_array_equal(mine.data, theirs.data)


def test_callbacks_see_every_evaluations_gradients():
    seen = []
    solver = Solver(params(), dense(), backend="numpy")
    solver.on_gradients_ready(lambda s: seen.append((s.iter, float(np.abs(s.net.learnable[0].diff).sum()))))
    solver.step(2)
    assert [iteration for iteration, _ in seen] == [0, 0, 1, 1]
    assert len({total for _, total in seen}) == 4


def test_the_loss_shown_is_that_before_the_step():
    losses = []
    solver = Solver(params(), dense(), backend="numpy", log=lambda e: losses.append(getattr(e, "loss", None)))
    solver.step(1)
    other = dense()
    assert losses[-1] == other.forward_backward()
    assert float(solver.net.outputs()[0].values) == losses[-1]


def test_a_net_that_cant_is_refused():
    class Once:
        def __init__(self, net):
            self._net = net

        def __getattr__(self, name):
            if name in ("keep_batches", "pass_again"):
                raise AttributeError(name)
            return getattr(self._net, name)

    with pytest.raises(NetError, match=r"SAM evaluates the gradient several times.*keep_batches"):
        Solver(params(), Once(dense()))


def test_an_update_by_hand_needs_passes_that_were_kept():
    net = dense()
    solver = Solver(params(), net, backend="numpy")
    before = [blob.data.copy() for blob in net.learnable]
    with pytest.raises(NetError, match="keep_batches"):
        solver.apply_update()
    for blob, kept in zip(net.learnable, before, strict=True):
        np.testing.assert_array_equal(blob.data, kept)
    net.keep_batches()
    net.forward_backward()
    solver.apply_update()
    assert solver.iter == 1


def test_passes_again_leave_everything_else_alone():
    net = dense()
    net.keep_batches()
    first = net.forward_backward(), net.forward_backward()
    diffs = [blob.diff.copy() for blob in net.learnable]
    place, outputs = net.position(), net.outputs()
    net.clear_diffs()
    assert net.pass_again() == sum(first)
    assert (net.position(), net.outputs()) == (place, outputs)
    for blob, kept in zip(net.learnable, diffs, strict=True):
        np.testing.assert_array_equal(blob.diff, kept)


def test_torch_nets_see_the_same_dropout_and_keep_their_means():
    torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    from solvergen.adapters.torch_net import Batches, TorchNet

    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
    )
    data = Batches(torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32), batch_size=6)
    net = TorchNet(module, torch.nn.functional.mse_loss, data)
    net.keep_batches()
    loss = net.forward_backward() + net.forward_backward()
    means = {name: buffer.clone() for name, buffer in module.named_buffers()}
    random, place, outputs = torch.get_rng_state(), net.position(), net.outputs()
    diffs = [blob.diff.copy() for blob in net.learnable]
    net.clear_diffs()
    assert net.pass_again() == loss
    for blob, kept in zip(net.learnable, diffs, strict=True):
        np.testing.assert_array_equal(blob.diff, kept)
    assert all(bool((buffer == means[name]).all()) for name, buffer in module.named_buffers())
    assert bool((torch.get_rng_state() == random).all())
    assert (net.position(), net.outputs()) == (place, outputs)


def test_torch_nets_go_on_to_the_same_bits(tmp_path):
    torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    from solvergen.adapters.torch_net import Batches, TorchNet

    def solver():
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2))
        x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32)
        net = TorchNet(module, torch.nn.functional.mse_loss, Batches(x, y, batch_size=7, shuffle=True))
        of = params(random_seed=5, snapshot_prefix=str(tmp_path / "t"), snapshot_format="SAFETENSORS")
        return Solver(of, net, backend="numpy")

    whole = solver()
    whole.step(6)
    first = solver()
    first.step(2)
    _, state = first.snapshot()
    second = solver()
    second.restore(state)
    second.step(4)
    for mine, theirs in zip(second.net.learnable, whole.net.learnable, strict=True):
        np.testing.assert_array_equal(mine.data, theirs.data)


def surrounded(backend, batch_size, **more):
    """A solver whose rule is surrounded by clipping, normalising and decay."""
    layers = [InnerProduct("a", 4, "tanh"), InnerProduct("b", 2)]
    net = DenseNet(X, Y, layers, batch_size=batch_size, dtype=np.float64)
    return Solver(params(weight_decay=0.25, **more), net, backend=backend)


@pytest.mark.parametrize("backend", ["numpy", "cpu"])
def test_two_halves_of_a_batch_are_the_batch(backend):
    """Each evaluation's gradients are clipped, normalised and decayed, as those of other rules."""
    whole = surrounded(backend, 6, clip_gradients=0.5)
    halves = surrounded(backend, 3, clip_gradients=1.0, iter_size=2)
    for solver in (whole, halves):
        solver.step(4)
    for a, b in zip(whole.net.learnable, halves.net.learnable, strict=True):
        np.testing.assert_allclose(a.data, b.data, rtol=1e-12, atol=1e-14)


def test_clipping_and_decay_are_of_each_evaluation():
    clip, decay, rho = 0.5, 0.25, 0.05
    solver = surrounded("numpy", 6, clip_gradients=clip)
    start = [blob.data.copy() for blob in solver.net.learnable]

    def gradients_at(arrays):
        net = dense()
        for blob, array in zip(net.learnable, arrays, strict=True):
            blob.data[...] = array
        net.forward_backward()
        norm = np.sqrt(sum((blob.diff**2).sum() for blob in net.learnable))
        assert norm > clip
        return [blob.diff * (clip / norm) + decay * blob.data for blob in net.learnable]

    uphill = gradients_at(start)
    norm = np.sqrt(sum((g**2).sum() for g in uphill))
    there = gradients_at([p + rho / norm * g for p, g in zip(start, uphill, strict=True)])
    solver.step(1)
    for blob, before, g in zip(solver.net.learnable, start, there, strict=True):
        np.testing.assert_allclose(blob.data, before - 0.0625 * g, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("call", ["snapshot", "apply_update", "solve", "step", "restore", "load_weights"])
def test_in_the_middle_of_an_update_nothing_else_begins(tmp_path, call):
    net = dense()
    solver = Solver(params(snapshot_prefix=str(tmp_path / "s")), net, backend="numpy")
    files = solver.snapshot()
    arguments = {"step": [1], "restore": [files[1]], "load_weights": [files[0]]}.get(call, [])
    calls = []

    def callback(_):
        calls.append(call)
        if len(calls) == 2:
            getattr(solver, call)(*arguments)

    solver.on_gradients_ready(callback)
    before = [blob.data.copy() for blob in net.learnable]
    with pytest.raises(TrainingError, match=f"{call} in the middle of an update of SAM"):
        solver.step(1)
    for blob, data in zip(net.learnable, before, strict=True):
        np.testing.assert_array_equal(blob.data, data)
    solver.step(1)
    assert solver.iter == 1


def test_an_interrupt_in_a_pass_again_leaves_the_place_in_the_data(monkeypatch):
    net, whole = dense(), dense()
    solver = Solver(params(), net, backend="numpy")
    solver.step(2)
    both, calls = net._both, []

    def interrupted():
        calls.append(net.position())
        loss = both()
        if len(calls) == 2:
            raise KeyboardInterrupt
        return loss

    monkeypatch.setattr(net, "_both", interrupted)
    before = [blob.data.copy() for blob in net.learnable]
    with pytest.raises(KeyboardInterrupt):
        solver.step(1)
    for blob, data in zip(net.learnable, before, strict=True):
        np.testing.assert_array_equal(blob.data, data)
    whole.seek({"row": calls[0]["row"]})
    whole.forward()
    assert net.position() == whole.position()
