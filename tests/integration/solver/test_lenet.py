"""A convolutional net on handwritten digits, trained from a prototxt by each of Caffe's solvers."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn isn't installed")

from solvergen.adapters.torch_net import Batches, TorchNet, accuracy  # noqa: E402
from solvergen.solver.training.events import Action, Collected, TestOutputs  # noqa: E402
from solvergen.solver.training.solver import Solver  # noqa: E402

ITERATIONS, BATCH = 150, 64
cross_entropy = torch.nn.functional.cross_entropy

# For each: the lines of the prototxt, and torch's optimizer with the same numbers where it has them.
SOLVERS = {
    "SGD": ("base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005",
            lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.0005)),
    "Nesterov": ("base_lr: 0.05 momentum: 0.9 weight_decay: 0.0005",
                 lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=0.0005, nesterov=True)),
    "AdaGrad": ("base_lr: 0.02", lambda p: torch.optim.Adagrad(p, 0.02)),
    "RMSProp": ("base_lr: 0.002 rms_decay: 0.99", lambda p: torch.optim.RMSprop(p, 0.002, alpha=0.99)),
    "AdaDelta": ("base_lr: 1.0 momentum: 0.95 delta: 1e-6",
                 lambda p: torch.optim.Adadelta(p, 1.0, rho=0.95, eps=1e-6)),
    "Adam": ("base_lr: 0.003 momentum: 0.9 momentum2: 0.999",
             lambda p: torch.optim.Adam(p, 0.003, betas=(0.9, 0.999))),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def lenet():
    nn = torch.nn
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10),
    )  # fmt: skip


@pytest.fixture(scope="module")
def digits():
    found = datasets.load_digits()
    images = torch.tensor(found.images / 16.0, dtype=torch.float32)[:, None]
    return images[:1400], torch.tensor(found.target)[:1400], images[1400:], torch.tensor(found.target)[1400:]


def solver(tmp_path, digits, kind, *, log=None, more=""):
    file = tmp_path / "solver.prototxt"
    file.write_text(
        f"""
        net: "lenet.prototxt"  # what the module stands for
        type: "{kind}" {SOLVERS[kind][0]}
        lr_policy: "fixed" max_iter: {ITERATIONS} random_seed: 7 solver_mode: CPU
        test_iter: 4 test_interval: {ITERATIONS} test_initialization: false test_compute_loss: true
        {more}
        """
    )
    x, y, test_x, test_y = digits
    net = TorchNet(
        lenet(),
        cross_entropy,
        Batches(x, y, batch_size=BATCH, shuffle=True),
        lr_mult={"*.bias": 2.0},
        decay_mult={"*.bias": 0.0},
    )
    test = net.for_testing(
        Batches(test_x, test_y, batch_size=100), loss=cross_entropy, metrics={"accuracy": accuracy}
    )
    return Solver(file, net, [test], backend="cpu" if kind != "SGD" else "numpy", log=log)


def torch_accuracy(digits, make):
    x, y, test_x, test_y = digits
    model = lenet()
    batches = Batches(x, y, batch_size=BATCH, shuffle=True)
    batches.seed(7)
    weights = [p for n, p in model.named_parameters() if not n.endswith("bias")]
    biases = [p for n, p in model.named_parameters() if n.endswith("bias")]
    optimizer = make([{"params": weights}, {"params": biases}])
    optimizer.param_groups[1]["lr"] *= 2
    optimizer.param_groups[1]["weight_decay"] = 0
    for _ in range(ITERATIONS):
        inputs, targets = batches.next()
        optimizer.zero_grad()
        cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        return accuracy(model(test_x[:397]), test_y[:397]).item()


@pytest.mark.parametrize("kind", SOLVERS)
def test_it_learns_as_with_torch(kind, digits, tmp_path):
    log = Collected()
    one = solver(tmp_path, digits, kind, log=log, more="snapshot_after_train: false")
    one.solve()
    (test,) = [e for e in log.events if isinstance(e, TestOutputs)]
    found = {v.name: v.value for v in test.values}
    expected = torch_accuracy(digits, SOLVERS[kind][1])
    assert expected > 0.8
    assert found["accuracy"] > expected - 0.03
    assert test.loss < 1.0


@pytest.mark.parametrize("kind", SOLVERS)
def test_a_stopped_and_resumed_run_ends_with_the_same_bits(kind, digits, tmp_path):
    more = "snapshot_format: SAFETENSORS average_loss: 10"
    whole = solver(tmp_path, digits, kind, more="snapshot_after_train: false average_loss: 10")
    whole.step(40)

    first = solver(tmp_path, digits, kind, more=more)
    first.set_action_function(lambda: Action.STOP if first.iter == 17 else Action.NONE)
    first.solve()
    assert first.iter == 17  # and the snapshot after it is written

    resumed = solver(tmp_path, digits, kind, more=more)
    with torch.no_grad():
        for parameter in resumed.net.module.parameters():
            parameter.fill_(9)
    torch.manual_seed(1234)
    resumed.restore(tmp_path / "solver_iter_17.state.safetensors")
    resumed.step(23)
    for a, b in zip(whole.net.learnable, resumed.net.learnable, strict=True):
        assert a.data.tobytes() == b.data.tobytes()
    for a, b in zip(whole.history, resumed.history, strict=True):
        assert a.tobytes() == b.tobytes()
    assert whole.smoothed_loss == resumed.smoothed_loss


def test_random_numbers_of_the_module_go_on_too(digits, tmp_path):
    """Dropout, whose masks are drawn by torch, and the running means of a batch norm."""
    from solvergen.solver import SolverParameters

    x, y, *_ = digits

    def make():
        nn = torch.nn
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 16), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 10)
        )
        params = SolverParameters(
            base_lr=0.1, lr_policy="fixed", momentum=0.9, random_seed=5, solver_mode="CPU",
            snapshot_prefix=str(tmp_path / "d"), snapshot_format="SAFETENSORS",
        )  # fmt: skip
        return Solver(params, TorchNet(module, cross_entropy, Batches(x, y, batch_size=32)), backend="numpy")

    whole = make()
    whole.step(5)
    state = whole.snapshot()[1]
    whole.step(5)
    resumed = make()
    resumed.restore(state)
    resumed.step(5)
    found = resumed.net.module.state_dict()
    for name, tensor in whole.net.module.state_dict().items():
        assert torch.equal(tensor, found[name])
    np.testing.assert_array_equal(whole.net.outputs()[0].values, resumed.net.outputs()[0].values)
