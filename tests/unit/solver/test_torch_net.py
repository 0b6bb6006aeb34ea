"""The adapter for torch: shared memory, multipliers, sharing, data."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")

from solvergen.adapters.torch_net import Batches, TorchNet  # noqa: E402
from solvergen.errors import ArrayError  # noqa: E402
from solvergen.solver import SolverParameters  # noqa: E402
from solvergen.solver.net.error import NetError  # noqa: E402
from solvergen.solver.net.protocol import Net, Seedable, Seekable, Sharing  # noqa: E402
from solvergen.solver.training.events import Collected  # noqa: E402
from solvergen.solver.training.solver import Solver  # noqa: E402

mse = torch.nn.functional.mse_loss
X, Y = torch.randn(10, 3), torch.randn(10, 2)


def module():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))


def net(of=None, **more):
    return TorchNet(of or module(), mse, Batches(X, Y, batch_size=4), **more)


def params(**more):
    return SolverParameters(base_lr=0.1, lr_policy="fixed", solver_mode="CPU", **more)


def test_it_is_what_the_protocols_say():
    one = net()
    for protocol in (Net, Seekable, Seedable, Sharing):
        assert isinstance(one, protocol)


def test_memory_is_shared_both_ways():
    one = net()
    weights = dict(one.module.named_parameters())["0.weight"]
    assert one.learnable[0].data.ctypes.data == weights.data_ptr()
    one.learnable[0].data.fill(3)
    assert (weights == 3).all()
    one.clear_diffs()
    one.forward_backward()
    assert one.learnable[0].diff.ctypes.data == weights.grad.data_ptr()


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_other_types(dtype):
    torch_type = getattr(torch, dtype)
    one = TorchNet(module().to(torch_type), mse, Batches(X.to(torch_type), Y.to(torch_type), batch_size=4))
    before = one.learnable[0].data.copy()
    Solver(params(), one, backend="numpy").step(2)
    assert str(before.dtype) == dtype
    assert (one.learnable[0].data != before).any()


def test_a_step_is_that_of_torch():
    ours, theirs = net(), module()
    optimizer = torch.optim.SGD(theirs.parameters(), 0.1)
    batches = Batches(X, Y, batch_size=4)
    solver = Solver(params(iter_size=1), ours, backend="numpy")
    for _ in range(5):
        solver.step(1)
        inputs, targets = batches.next()
        optimizer.zero_grad()
        mse(theirs(inputs), targets).backward()
        optimizer.step()
    for blob, parameter in zip(ours.learnable, theirs.parameters(), strict=True):
        np.testing.assert_allclose(blob.data, parameter.detach().numpy(), rtol=1e-5, atol=1e-7)


def test_gradients_that_someone_sets_to_none_come_back():
    one = net()
    one.module.zero_grad(set_to_none=True)
    one.clear_diffs()
    one.forward_backward()
    one.module.zero_grad(set_to_none=True)
    kept = one.learnable[0].diff.copy()
    assert kept.any()
    one.seek({"row": 0, "seed": 0})
    one.forward_backward()
    np.testing.assert_allclose(one.learnable[0].diff, 2 * kept, rtol=1e-6)


def test_multipliers_by_name_and_pattern():
    one = net(lr_mult={"*": 3, "*.bias": 2, "0.bias": 0}, decay_mult={"*.bias": 0})
    assert {b.name: (b.lr_mult, b.decay_mult) for b in one.learnable} == {
        "0.weight": (3, 1),
        "0.bias": (0, 0),
        "2.weight": (3, 1),
        "2.bias": (2, 0),
    }
    one.clear_diffs()
    one.forward_backward()
    assert not one.learnable[1].diff.any()
    with pytest.raises(NetError, match="fits none of the parameters"):
        net(lr_mult={"3.*": 1})


def test_a_parameter_that_two_layers_share_is_there_once():
    of = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3), torch.nn.Linear(3, 2))
    of[1].weight = of[0].weight
    one = net(of)
    assert [b.name for b in one.learnable] == ["0.weight", "0.bias", "1.bias", "2.weight", "2.bias"]
    assert [(layer.name, [b.name for b in layer.blobs]) for layer in one.layers] == [
        ("0", ["0.weight", "0.bias"]),
        ("1", ["0.weight", "1.bias"]),
        ("2", ["2.weight", "2.bias"]),
    ]


def test_what_isnt_learned_is_in_model_files_all_the_same():
    of = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    of[0].bias.requires_grad_(False)
    one = net(of)
    assert [b.name for b in one.learnable] == ["0.weight", "1.weight", "1.bias"]
    assert [[b.name for b in layer.blobs] for layer in one.layers] == [
        ["0.weight", "0.bias"],
        ["1.weight", "1.bias", "1.running_mean", "1.running_var"],
    ]


def test_a_net_for_tests_is_in_evaluation_mode():
    of = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Dropout(0.9))
    one = net(of)
    test = one.for_testing(Batches(X, Y, batch_size=10))
    modes = []
    of.register_forward_hook(lambda m, i, o: modes.append(m.training))
    one.forward_backward()
    first = test.forward()[0].values
    one.forward_backward()
    assert modes == [True, False, True]
    one.clear_diffs()
    np.testing.assert_array_equal(first, test.forward()[0].values)


def test_a_test_net_of_another_module_takes_the_parameters_over():
    one, other = net(), TorchNet(module(), mse, Batches(X, Y, batch_size=4), phase="TEST")
    other.share_with(one)
    one.learnable[0].data.fill(2)
    assert (next(other.module.parameters()) == 2).all()
    assert (other.learnable[0].data == 2).all()


def test_what_is_computed_may_be_anything():
    def compute(of, batch):
        (x,) = batch
        return {"size": (of(x) ** 2).mean(), "shift": of(x).mean(), "seen": torch.tensor(float(len(x)))}

    one = TorchNet(
        module(), data=[(X[:4],), (X[4:],)], compute=compute, loss_weights={"size": 1.0, "shift": -0.5}
    )
    one.clear_diffs()
    loss = one.forward_backward()
    values = {o.name: (float(o.values), o.loss_weight) for o in one.outputs()}
    assert values["seen"] == (4.0, 0.0)
    np.testing.assert_allclose(loss, values["size"][0] - 0.5 * values["shift"][0], rtol=1e-6)
    assert [float(one.forward()[2].values) for _ in range(3)] == [6.0, 4.0, 6.0]
    assert one.position() is None


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_wrap_and_can_be_sought(shuffle):
    rows = torch.arange(10)
    batches = Batches(rows, batch_size=4, shuffle=shuffle, seed=3)
    taken = [batches.next()[0].tolist() for _ in range(10)]
    every = [row for batch in taken for row in batch]
    for turn in range(4):  # each turn has every row once
        assert sorted(every[turn * 10 : turn * 10 + 10]) == list(range(10))
    assert (every[:10] == list(range(10))) is not shuffle
    other = Batches(rows, batch_size=4, shuffle=shuffle, seed=8)
    other.seek({"row": 16, "seed": 3})
    assert [other.next()[0].tolist() for _ in range(6)] == taken[4:]


def test_a_data_loader():
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X, Y), batch_size=5)
    one = TorchNet(module(), mse, loader)
    Solver(params(), one, backend="numpy").step(5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: TorchNet(module()), "either a loss, or compute"),
        (lambda: TorchNet(module(), compute=lambda m, b: {}), "loss_weights"),
        (lambda: TorchNet(module(), mse, []).forward(), "no batches"),
        (lambda: net().for_testing(Batches(X, Y, batch_size=2)).forward_backward(), "net for tests"),
        (lambda: Batches(X, Y[:3], batch_size=2), "one length"),
    ],
)
def test_what_is_refused(make, said):
    with pytest.raises(NetError, match=said):
        make()


def test_sharing_needs_equal_shapes():
    other = TorchNet(torch.nn.Linear(3, 5), mse, Batches(X, Y, batch_size=4), phase="TEST")
    first = TorchNet(torch.nn.Linear(3, 2), mse, Batches(X, Y, batch_size=4))
    with pytest.raises(NetError, match="'weight' has the shape"):
        Solver(params(test_iter=(1,), test_interval=1), first, [other], backend="numpy")


@pytest.mark.parametrize("made", [None, 3.0, {"loss": 3.0}, {"loss": torch.zeros(1, dtype=torch.complex64)}])
@pytest.mark.parametrize("debug_info", [False, True])
def test_what_compute_must_return(made, debug_info):
    net = TorchNet(module(), data=[(X, Y)], compute=lambda m, b: made, loss_weights={"loss": 1.0})
    solver = Solver(params(debug_info=debug_info, display=1), net, log=Collected())
    with pytest.raises(NetError, match="compute of Sequential must return tensors of real numbers by name"):
        solver.step(1)
    assert not any(part._forward_hooks for part in net.module.modules())


def test_data_that_give_no_batches():
    with pytest.raises(NetError, match="data must give batches"):
        TorchNet(module(), torch.nn.functional.mse_loss, None)


def test_complex_parameters_arent_passed_over():
    of = module()
    of[0].extra = torch.nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(NetError, match="parameter 'extra' of '0' is complex"):
        net(of)


@pytest.mark.parametrize(("gpus", "given_back"), [(0, 0), (1, 0), (2, 2)])
def test_random_numbers_go_back_to_where_they_were(monkeypatch, gpus, given_back):
    one = net(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)))
    state = dict(one.rng_state())
    drawn = torch.rand(3)
    one.module(X)
    seen = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", seen.extend)
    one.set_rng_state({**state, "cuda": [np.zeros(16, np.uint8), np.ones(16, np.uint8)]})
    assert (torch.rand(3) == drawn).all()
    assert one.module[1].num_batches_tracked == 0
    assert [int(values[0]) for values in seen] == [0, 1][:given_back]
    one.set_rng_state({name: value for name, value in state.items() if name != "cuda"})
    assert (torch.rand(3) == drawn).all()


class Holds(torch.nn.Module):
    """Has one parameter, and perhaps a buffer."""

    def __init__(self, parameter, buffer=None):
        super().__init__()
        self.held = torch.nn.Parameter(parameter)
        if buffer is not None:
            self.register_buffer("beside", buffer)

    def forward(self, x):
        return x[:, :2] * self.held.float().sum()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: net(Holds(torch.ones(4, 5).t())), "parameter 'held' isn't contiguous"),
        (lambda: net(Holds(torch.ones(2), torch.ones(1).expand(3))), "buffer 'beside' isn't contiguous"),
        (
            lambda: net(Holds(torch.ones(2).to(torch.float8_e5m2))),
            "float8_e5m2: there can be float32",
        ),
        (
            lambda: Batches([[1.0]], batch_size=1),
            "tensors of rows .* not a list",
        ),
        (lambda: Batches(np.ones((2, 3)), batch_size=1), "not a ndarray"),
        (lambda: Batches(torch.tensor(1.0), batch_size=1), "not a single number"),
    ],
)
def test_tensors_that_cannot_be(make, said):
    with pytest.raises(NetError, match=said):
        make()


def test_a_misaligned_parameter_is_said():
    raw = torch.frombuffer(bytearray(21), dtype=torch.float32, offset=1, count=5)
    with pytest.raises(ArrayError, match="'held' is misaligned"):
        Solver(params(), net(Holds(raw)), backend="numpy")


OUTPUTS = {
    "negative bit": torch.tensor([1 + 2j, 3 - 4j]).conj().imag,
    "transposed": torch.arange(6.0).reshape(2, 3).t(),
    "expanded": torch.ones(1).expand(3),
    "narrow": torch.tensor([1.0, 2.0]).to(torch.float8_e5m2),
    "bfloat16": torch.tensor([1.0, 2.0]).bfloat16(),
    "sparse": torch.tensor([0.0, 2.0]).to_sparse(),
    "bool": torch.tensor([True]),
}


@pytest.mark.parametrize("debug_info", [False, True])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_any_layout(kind, debug_info):
    tensor = OUTPUTS[kind]

    def compute(module, batch):
        return {"beside": tensor, "loss": mse(module(batch[0]), batch[1])}

    batches = Batches(X, Y, batch_size=4)
    one = TorchNet(module(), data=batches, compute=compute, loss_weights={"loss": 1.0})
    Solver(params(debug_info=debug_info), one, backend="numpy", log=Collected()).step(1)
    wanted = tensor.to_dense() if kind == "sparse" else tensor
    np.testing.assert_array_equal(one.outputs()[0].values, wanted.float().resolve_neg().numpy())


def test_outputs_stay_what_the_pass_put_out():
    def compute(module, batch):
        return {"bias": module[2].bias, "loss": mse(module(batch[0]), batch[1])}

    batches = Batches(X, Y, batch_size=4)
    one = TorchNet(module(), data=batches, compute=compute, loss_weights={"loss": 1.0})
    before = one.learnable[3].data.copy()
    Solver(params(), one, backend="numpy").step(1)
    assert (one.learnable[3].data != before).any()
    np.testing.assert_array_equal(one.outputs()[0].values, before)


def test_outputs_that_are_no_numbers():
    def compute(module, batch):
        return {"beside": torch.empty(2, device="meta"), "loss": mse(module(batch[0]), batch[1])}

    one = TorchNet(module(), data=Batches(X, Y, batch_size=4), compute=compute, loss_weights={"loss": 1.0})
    with pytest.raises(NetError, match="a meta tensor among what the net puts out"):
        one.forward()
