"""debug_info: the lines of Caffe's net, layer by layer forward and backward, and what is in them."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters
from solvergen.solver.logs.caffe_log import CaffeLog
from solvergen.solver.logs.glog import number
from solvergen.solver.net.dense import Param, Sliced
from solvergen.solver.net.protocol import Watchable
from solvergen.solver.training.events import Collected, DebugBlob

RNG = np.random.default_rng(1)
X, Y = RNG.standard_normal((6, 3)), RNG.standard_normal((6, 2))


def mean(array):
    return number(np.abs(np.asarray(array, np.float64)).mean())


def dense():
    layers = [InnerProduct("a", 4, "tanh", bias=Param(lr_mult=0)), InnerProduct("b", 2)]
    return DenseNet(X, Y, layers, batch_size=6, dtype=np.float64)


def lines_of(net, tests=(), *, run=lambda solver: solver.step(1), **params):
    lines = []
    solver = Solver(
        SolverParameters(
            base_lr=0.1, lr_policy="fixed", solver_mode="CPU", debug_info=True, display=2, **params
        ),
        net,
        tests,
        backend="numpy",
        log=CaffeLog(lines.append),
    )
    run(solver)
    return [(line[0], line.partition("] ")[2]) for line in lines]


def debugged(net, tests=(), **more):
    return [text for _, text in lines_of(net, tests, **more) if text.startswith("    [")]


def test_a_dense_net_tells_what_caffe_tells():
    net, twin = dense(), dense()
    a, b = (layer.blobs for layer in twin.layers)
    hidden = np.tanh(X @ a[0].data.T + a[1].data)
    scores = hidden @ b[0].data.T + b[1].data
    above = (scores - Y) / 6
    below = above @ b[0].data
    inside = below * (1 - hidden**2)
    diffs = [inside.T @ X, above.T @ hidden, above.sum(axis=0)]
    data = [blob.data.copy() for blob in twin.learnable]
    loss = twin.forward_backward()
    assert debugged(net) == [
        f"    [Forward] Layer data, top blob data data: {mean(X)}",
        f"    [Forward] Layer data, top blob label data: {mean(Y)}",
        f"    [Forward] Layer a, top blob a data: {mean(hidden)}",
        f"    [Forward] Layer a, param blob 0 data: {mean(data[0])}",
        "    [Forward] Layer a, param blob 1 data: 0",
        f"    [Forward] Layer b, top blob b data: {mean(scores)}",
        f"    [Forward] Layer b, param blob 0 data: {mean(data[2])}",
        "    [Forward] Layer b, param blob 1 data: 0",
        f"    [Forward] Layer loss, top blob loss data: {number(loss)}",
        f"    [Backward] Layer loss, bottom blob b diff: {mean(above)}",
        f"    [Backward] Layer b, bottom blob a diff: {mean(below)}",
        f"    [Backward] Layer b, param blob 0 diff: {mean(diffs[1])}",
        f"    [Backward] Layer b, param blob 1 diff: {mean(diffs[2])}",
        f"    [Backward] Layer a, param blob 0 diff: {mean(diffs[0])}",
        "    [Backward] All net params (data, diff): "
        f"L1 norm = ({number(sum(np.abs(d).sum() for d in data))}, "
        f"{number(sum(np.abs(d).sum() for d in diffs))}); "
        f"L2 norm = ({number(sum((d * d).sum() for d in data) ** 0.5)}, "
        f"{number(sum((d * d).sum() for d in diffs) ** 0.5)})",
    ]


def test_sums_are_told_as_an_error_as_in_caffe():
    severities = {severity for severity, text in lines_of(dense()) if "All net params" in text}
    assert severities == {"E"}


def test_every_pass_of_a_displayed_iteration_and_nothing_between():
    def count(steps, **more):
        told = debugged(dense(), run=lambda solver: solver.step(steps), **more)
        return sum("All net params" in text for text in told)

    assert (count(1), count(2), count(3)) == (1, 1, 2)
    assert count(1, iter_size=3) == 3


def test_gradients_of_iter_size_passes_are_summed_up():
    told = debugged(dense(), iter_size=2)
    values = [float(text.split()[-1]) for text in told if "Layer b, param blob 0 diff" in text]
    assert values[1] == pytest.approx(2 * values[0], rel=1e-5)


def test_test_nets_tell_of_each_batch_forward():
    told = debugged(dense(), [dense()], test_iter=[2], test_interval=10, run=lambda solver: solver.test_all())
    assert len(told) == 2 * 9
    assert all(text.startswith("    [Forward]") for text in told)


def test_slices_are_layers():
    parts = tuple(InnerProduct(n, 2, weights=Param("w"), bias=None) for n in ("p", "q"))
    net = DenseNet(X, Y, [InnerProduct("a", 3), Sliced("s", parts)], batch_size=6)
    net.watch("magnitudes")
    net.forward_backward()
    assert [(one.layer, list(one.tops), list(one.bottoms)) for one in net.watched()] == [
        ("data", ["data", "label"], []),
        ("a", ["a"], []),
        ("p", ["p"], ["a"]),
        ("q", ["q"], ["a"]),
        ("loss", ["loss"], ["s"]),
    ]


def test_a_net_that_cant_be_watched_tells_of_its_parameters():
    class Plain:
        def __init__(self, net):
            self._net = net

        def __getattr__(self, name):
            if name in ("watch", "watched"):
                raise AttributeError(name)
            return getattr(self._net, name)

    assert not isinstance(Plain(dense()), Watchable)
    told = debugged(Plain(dense()))
    assert len(told) == 4 + 3 + 1
    assert not any("top blob" in text for text in told)


def test_nobody_listens_and_nothing_is_watched():
    net = dense()
    net.watch = lambda what: pytest.fail("watched")
    params = SolverParameters(base_lr=0.1, lr_policy="fixed", solver_mode="CPU", debug_info=True, display=1)
    Solver(params, net, backend="numpy").step(1)


class TestTorch:
    @pytest.fixture(autouse=True)
    def imported(self):
        self.torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")

    def net(self, module, **more):
        from solvergen.adapters.torch_net import Batches, TorchNet

        x, y = (self.torch.tensor(a, dtype=self.torch.float32) for a in (X, Y))
        return TorchNet(module, self.torch.nn.functional.mse_loss, Batches(x, y, batch_size=6), **more)

    def test_layers_that_work_in_place(self):
        torch = self.torch
        torch.manual_seed(0)
        module = torch.nn.Sequential(
            torch.nn.Linear(3, 4), torch.nn.ReLU(inplace=True), torch.nn.Linear(4, 2)
        )
        net = self.net(module)
        x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(Y, dtype=torch.float32)
        first = module[0](x)
        second = torch.nn.functional.relu(first)
        third = module[2](second)
        loss = torch.nn.functional.mse_loss(third, y)
        gradients = torch.autograd.grad(loss, [first, second, third])
        wanted = {
            "tops": [mean(v.detach()) for v in (first, second, third)],
            "bottoms": [mean(v) for v in gradients],
        }
        net.watch("magnitudes")
        net.forward_backward()
        data, a, relu, b, end = net.watched()
        assert [one.layer for one in (data, a, relu, b, end)] == ["data", "0", "1", "2", "loss"]
        assert [number(one.tops[one.layer]) for one in (a, relu, b)] == wanted["tops"]
        assert number(end.tops["loss"]) == number(float(loss.detach()))
        assert a.bottoms == {}
        assert [list(one.bottoms) for one in (relu, b, end)] == [["0"], ["1"], ["2"]]
        found = [number(relu.bottoms["0"]), number(b.bottoms["1"]), number(end.bottoms["2"])]
        assert found == wanted["bottoms"]
        net.watch(None)
        assert not any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())

    def test_watching_changes_no_gradient(self):
        torch = self.torch

        def made():
            torch.manual_seed(0)
            return self.net(
                torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
            )

        plain, seen, timed = made(), made(), made()
        seen.watch("magnitudes")
        timed.watch("seconds")
        losses = [net.forward_backward() for net in (plain, seen, timed)]
        assert len(set(losses)) == 1
        for a, b, c in zip(plain.learnable, seen.learnable, timed.learnable, strict=True):
            np.testing.assert_array_equal(a.diff, b.diff)
            np.testing.assert_array_equal(a.diff, c.diff)

    def test_functions_between_layers_and_a_layer_that_is_called_twice(self):
        torch = self.torch

        class Twice(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(3, 3)
                self.last = torch.nn.Linear(3, 2)

            def forward(self, x):
                return self.last(torch.relu(self.inner(torch.relu(self.inner(x)))))

        net = self.net(Twice())
        net.watch("magnitudes")
        net.forward_backward()
        assert [(one.layer, list(one.bottoms)) for one in net.watched()] == [
            ("data", []),
            ("inner", []),
            ("inner", ["inner.input"]),
            ("last", ["last.input"]),
            ("loss", ["last"]),
        ]
        net.watch("seconds")
        net.forward_backward()
        assert all(one.forward >= 0 and one.backward >= 0 for one in net.watched())

    def test_a_run_tells_of_buffers_forward_alone(self):
        torch = self.torch
        module = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
        told = debugged(self.net(module))
        assert sum("[Forward] Layer 1, param blob" in text for text in told) == 4
        assert sum("[Backward] Layer 1, param blob" in text for text in told) == 2
        log = Collected()
        params = SolverParameters(
            base_lr=0.1, lr_policy="fixed", solver_mode="CPU", debug_info=True, display=1
        )
        Solver(params, self.net(module), backend="numpy", log=log).step(1)
        blobs = [e for e in log.events if isinstance(e, DebugBlob)]
        assert {(e.phase, e.layer, e.blob) for e in blobs} == {
            ("forward", "data", "data"),
            ("forward", "data", "label"),
            ("forward", "0", "0"),
            ("forward", "1", "1"),
            ("forward", "loss", "loss"),
            ("backward", "1", "0"),
            ("backward", "loss", "1"),
        }
