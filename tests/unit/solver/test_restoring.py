"""What a Solver takes back from its files, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import SolvergenError
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.solver import SolverParameters, files
from solvergen.solver.files.optimizers import optimizer_of
from solvergen.solver.net.dense import DenseNet, InnerProduct, Param, Sliced
from solvergen.solver.net.protocol import Blob, LayerBlobs, Output
from solvergen.solver.training.events import Collected, Resumed, Warned
from solvergen.solver.training.solver import Solver
from tests.support.bits import assert_same_bits

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((8, 5)), RNG.standard_normal((8, 2))


def make(tmp_path, kind="SGD", *, layers=(4, 2), log=None, **more):
    names = ("one", "two", "three")
    parts = [InnerProduct(name, width, "tanh") for name, width in zip(names, layers, strict=False)]
    net = DenseNet(X, Y if layers[-1] == 2 else X[:, : layers[-1]], parts, batch_size=4)
    settings = {
        "base_lr": 0.1,
        "lr_policy": "fixed",
        "solver_mode": "CPU",
        "snapshot_prefix": str(tmp_path / "s"),
        "momentum": 0.0 if kind in ("AdaGrad", "RMSProp") else 0.9,
        **more,
    }
    if kind is not None:
        settings["type"] = kind
    return Solver(SolverParameters(**settings), net, backend="numpy", log=log)


def weights(solver):
    return [blob.data.copy() for blob in solver.net.learnable]


def warnings(log):
    return [e.text for e in log.events if isinstance(e, Warned)]


def test_the_names_are_caffes(tmp_path):
    one = make(tmp_path)
    assert one.snapshot() == (f"{tmp_path}/s_iter_0.caffemodel", f"{tmp_path}/s_iter_0.solverstate")


def test_without_a_prefix_there_is_no_snapshot(tmp_path):
    one = make(tmp_path, snapshot_prefix=None)
    with pytest.raises(SolvergenError, match="snapshot_prefix"):
        one.snapshot()


def test_writability_is_tried_at_the_start(tmp_path):
    with pytest.raises(SolvergenError, match="snapshot_prefix"):
        make(tmp_path, snapshot=10, snapshot_prefix=str(tmp_path / "no" / "s"))


def test_weights_alone(tmp_path):
    first = make(tmp_path)
    first.step(3)
    model, _ = first.snapshot()
    second = make(tmp_path, "Adam")
    second.load_weights(model)
    assert second.iter == 0
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_that_the_parameters_name(tmp_path):
    first = make(tmp_path)
    first.step(3)
    model, _ = first.snapshot()
    second = make(tmp_path, "Adam", weights=[model])
    for a, b in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(a, b)


def test_weights_go_by_the_layers_names(tmp_path):
    model, _ = make(tmp_path, layers=(4, 2)).snapshot()
    log = Collected()
    other = make(tmp_path, layers=(4,), log=log)
    before = weights(other)
    other.load_weights(model)
    assert (other.net.learnable[0].data == before[0]).all()  # the same seed
    assert any("ignoring layer 'two'" in text for text in warnings(log))
    log = Collected()
    other = make(tmp_path, layers=(4, 2, 2), log=log)
    other.load_weights(model)
    assert any("no layer 'three'" in text for text in warnings(log))


def test_another_shape_changes_nothing(tmp_path):
    first = make(tmp_path, layers=(4, 2))
    first.step(2)
    model, state = first.snapshot()
    other = make(tmp_path, layers=(4, 3))
    before = weights(other)
    for attempt in (lambda: other.load_weights(model), lambda: other.restore(state)):
        with pytest.raises(SolvergenError, match="shape"):
            attempt()
        assert other.iter == 0
        for a, b in zip(before, weights(other), strict=True):
            np.testing.assert_array_equal(a, b)
        assert not any(h.any() for h in other.history)


def test_a_history_of_another_length(tmp_path):
    first = make(tmp_path, "Adam")
    first.step(2)
    _, state = first.snapshot()
    other = make(tmp_path, "SGD")
    with pytest.raises(SolvergenError, match="incorrect length of history"):
        other.restore(state)
    assert other.iter == 0
    other.restore(state, history=False)
    assert other.iter == 2
    assert not any(h.any() for h in other.history)
    for a, b in zip(weights(first), weights(other), strict=True):
        np.testing.assert_array_equal(a, b)
    other.step(1)


def test_a_model_is_no_state(tmp_path):
    model, _ = make(tmp_path).snapshot()
    with pytest.raises(SolvergenError):
        make(tmp_path).restore(model)


def test_another_type_begins_anew_and_says_so(tmp_path):
    first = make(tmp_path, "RMSProp", snapshot_format="SAFETENSORS")
    first.step(2)
    _, state = first.snapshot()
    log = Collected()
    other = make(tmp_path, "SGD", log=log)
    other.step(1)
    other.restore(state)
    assert any("of RMSProp" in text and "begin anew" in text for text in warnings(log))
    assert (other.iter, other.optimizer.t) == (2, 0)
    assert not any(h.any() for h in other.history)
    other.step(1)


def test_caffes_sgd_and_the_optimizer_sgd_are_two(tmp_path):
    first = make(tmp_path, "SGD", snapshot_format="SAFETENSORS")
    first.step(2)
    _, state = first.snapshot()
    log = Collected()
    other = make(tmp_path, None, optimizer="SGD", hyperparameters={"momentum": 0.9}, momentum=None, log=log)
    other.restore(state)
    assert any("of another SGD" in text and "begin anew" in text for text in warnings(log))
    assert not any(h.any() for h in other.history)
    other.step(1)


def test_sgd_goes_on_as_nesterov(tmp_path):
    first = make(tmp_path, "SGD", snapshot_format="SAFETENSORS")
    first.step(2)
    _, state = first.snapshot()
    log = Collected()
    other = make(tmp_path, "Nesterov", log=log)
    other.restore(state)
    assert any("means the same" in text for text in warnings(log))
    for a, b in zip(first.history, other.history, strict=True):
        np.testing.assert_array_equal(a, b)
    assert any(isinstance(e, Resumed) and e.path == state for e in log.events)


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5", "SAFETENSORS"])
def test_multistep_goes_on_where_it_was(tmp_path, form):
    more = {"lr_policy": "multistep", "gamma": 0.5, "stepvalue": (1, 1, 4), "snapshot_format": form}
    whole, first = make(tmp_path, **more), make(tmp_path, **more)
    first.step(3)
    resumed = make(tmp_path, **more)
    resumed.restore(first.snapshot()[1])
    whole.step(3)
    assert resumed.lr == whole.lr
    whole.step(3)
    resumed.step(3)
    assert resumed.lr == whole.lr


def test_a_plateau_goes_on_where_it_was(tmp_path):
    more = {
        "lr_policy": "plateau",
        "policy": {"patience": 1, "threshold": 0.9},
        "snapshot_format": "SAFETENSORS",
        "base_lr": 0.5,
    }
    whole, first = make(tmp_path, **more), make(tmp_path, **more)
    first.step(5)
    resumed = make(tmp_path, **more)
    resumed.restore(first.snapshot()[1])
    whole.step(12)
    resumed.step(7)
    assert whole.lr < 0.5  # it did see plateaus
    assert resumed.lr == whole.lr
    for a, b in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "optimizer", ["AdamW", "Prodigy", "NAdam", "DAdaptAdamW", "Adafactor", "CAME", "RowwiseAdagrad"]
)
def test_any_generated_optimizer_goes_on_from_our_own_files(tmp_path, optimizer):
    """Scalar and shared states and those of lines too, which Caffe's files have no place for."""
    more = {"optimizer": optimizer, "snapshot_format": "SAFETENSORS", "momentum": None, "weight_decay": 0.01}
    whole, first = make(tmp_path, None, **more), make(tmp_path, None, **more)
    whole.step(8)
    first.step(5)
    resumed = make(tmp_path, None, **more)
    resumed.restore(first.snapshot()[1])
    resumed.step(3)
    assert resumed.type == optimizer
    for a, b in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
@pytest.mark.parametrize(
    ("optimizer", "lost"), [("NAdam", "mu_product"), ("Adafactor", "row_var, col_var"), ("AdamW", None)]
)
def test_what_caffes_files_have_no_place_for_is_told(tmp_path, form, optimizer, lost):
    log = Collected()
    more = {"optimizer": optimizer, "snapshot_format": form, "momentum": None, "max_iter": 9, "log": log}
    first = make(tmp_path, None, **more)
    first.step(3)
    path = first.snapshot()[1]
    written = warnings(log)
    log.events.clear()
    resumed = make(tmp_path, None, **more)
    resumed.restore(path)
    if lost is None:
        assert (written, warnings(log)) == ([], [])
    else:
        assert [f"will not hold {lost} of {optimizer}, since" in text for text in written] == [True]
        assert [f"doesn't hold {lost} of {optimizer}" in text for text in warnings(log)] == [True]
    # Without any of its states, a rule begins as if there had been no update.
    assert set(resumed.optimizer.steps.values()) == {0 if optimizer == "Adafactor" else 3}
    assert resumed.iter == 3


def test_the_last_snapshots_are_kept(tmp_path):
    one = make(tmp_path, snapshot=1, keep_snapshots=2, max_iter=4)
    one.solve()
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix == ".solverstate") == [
        "s_iter_3.solverstate",
        "s_iter_4.solverstate",
    ]


def test_differences_in_model_files(tmp_path):
    from solvergen.solver import files

    one = make(tmp_path, snapshot_diff=True)
    before = weights(one)
    one.step(1)
    model = files.read_model(one.snapshot()[0])
    assert [layer.name for layer in model.layers] == ["one", "two"]
    np.testing.assert_array_equal(model.layers[0].blobs[0], before[0] - model.layers[0].diffs[0])
    assert model.layers[0].diffs[0].any()


def test_data_that_cannot_be_sought_are_told_of(tmp_path):
    torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    from solvergen.adapters.torch_net import TorchNet

    def made(log=None):
        net = TorchNet(
            torch.nn.Linear(2, 1), torch.nn.functional.mse_loss, [(torch.ones(3, 2), torch.ones(3, 1))]
        )
        params = SolverParameters(
            base_lr=0.1, lr_policy="fixed", solver_mode="CPU", snapshot_prefix=str(tmp_path / "s"),
            snapshot_format="SAFETENSORS",
        )  # fmt: skip
        return Solver(params, net, backend="numpy", log=log)

    first = made()
    first.step(1)
    log = Collected()
    made(log).restore(first.snapshot()[1])
    assert any("can't be sought" in text for text in warnings(log))


SHARED = Param("w"), Param("b")


def sharing(tmp_path, *, bias=SHARED[1], **more):
    parts = (InnerProduct("a", 2, None, *SHARED), InnerProduct("c", 2, None, SHARED[0], bias))
    net = DenseNet(X, Y, [Sliced("both", parts)], batch_size=4)
    settings = {
        "base_lr": 0.1,
        "lr_policy": "fixed",
        "momentum": 0.9,
        "snapshot_prefix": str(tmp_path / "s"),
        **more,
    }
    return Solver(SolverParameters(solver_mode="CPU", **settings), net, backend="numpy")


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5", "SAFETENSORS"])
def test_layers_that_share_all_they_have(tmp_path, form):
    """In HDF5 the second one's group is empty."""
    whole, first = (sharing(tmp_path, snapshot_format=form) for _ in range(2))
    first.step(3)
    resumed = sharing(tmp_path)
    resumed.restore(first.snapshot()[1])
    whole.step(6)
    if form != "SAFETENSORS":  # Caffe's files don't say where in the data they were
        resumed.net.seek(first.net.position())
    resumed.step(3)
    for a, b in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_parameter_that_hdf5_lacks_and_nobody_shares(tmp_path):
    model, _ = sharing(tmp_path, snapshot_format="HDF5").snapshot()
    own = sharing(tmp_path, bias=Param("own"))
    own.load_weights(model)  # the file notes whose it is
    np.testing.assert_array_equal(own.net.learnable[2].data, own.net.learnable[1].data)
    h5py = pytest.importorskip("h5py")
    with h5py.File(model, "r+") as root:  # as Caffe writes it
        for name in list(root["data/c"].attrs):
            del root["data/c"].attrs[name]
    with pytest.raises(SolvergenError, match="parameter 1 of layer 'c' is missing"):
        own.load_weights(model)


class OfAxes:
    """A net of parameters of these shapes, whose gradients are random numbers of the pass."""

    name = "axes"

    def __init__(self, *shapes, dtype=np.float32):
        self.learnable = tuple(
            Blob(f"w{i}", np.ones(shape, dtype), np.zeros(shape, dtype), layer="all", index=i)
            for i, shape in enumerate(shapes)
        )
        # What isn't learned may lie in memory as it likes.
        self.beside = np.arange(6, dtype=dtype).reshape(2, 3).T
        beside = Blob("beside", self.beside, self.beside, 0.0, 0.0, "all", len(shapes))
        self.layers = (LayerBlobs("all", "Axes", (*self.learnable, beside)),)
        self.passes = 0

    def clear_diffs(self):
        for blob in self.learnable:
            blob.diff[...] = 0

    def forward(self):
        self.passes += 1
        return (Output("loss", np.array(1, np.float32), 1.0),)

    outputs = forward

    def forward_backward(self):
        self.forward()
        rng = np.random.default_rng(self.passes)
        for blob in self.learnable:
            blob.diff[...] += rng.normal(size=blob.diff.shape).astype(blob.diff.dtype)
        return 1.0


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5", "SAFETENSORS"])
def test_parameters_of_any_number_of_axes_go_on(tmp_path, form, dtype):
    """A parameter without axes, too: its history came back with one."""

    def begin():
        net = OfAxes((), (0,), (2, 3), (2, 0, 3), (1,) * 32, dtype=numpy_dtype(dtype))
        settings = {"base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "type": "Adam"}
        files = {"snapshot_prefix": str(tmp_path / "s"), "snapshot_format": form}
        return Solver(SolverParameters(**settings, **files), net, backend="numpy")

    one, other = begin(), begin()
    one.step(2)
    _, state = one.snapshot()
    other.net.beside[...] = 0
    other.restore(state)
    other.net.passes = one.net.passes
    np.testing.assert_array_equal(other.net.beside, one.net.beside)
    for solver in (one, other):
        solver.step(2)
    for mine, theirs in zip(one.net.learnable, other.net.learnable, strict=True):
        assert_same_bits(mine.data, theirs.data)
    for mine, theirs in zip(one.history, other.history, strict=True):
        assert_same_bits(mine, theirs)


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5", "SAFETENSORS"])
def test_what_is_read_only_in_a_net_stays(tmp_path, form):
    """It is no obstacle where it has the file's numbers; where it has others, nothing changes."""

    def begin(filled):
        net = OfAxes((2, 3))
        net.beside[...] = filled
        net.beside.flags.writeable = False
        settings = {"base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "type": "Adam"}
        files = {"snapshot_prefix": str(tmp_path / "s"), "snapshot_format": form}
        solver = Solver(SolverParameters(**settings, **files), net, backend="numpy")
        solver.step(2)
        return solver

    first, same, other = begin(1), begin(1), begin(2)
    model, state = first.snapshot()
    first.step(1)
    same.restore(state)
    same.net.passes = 2
    same.step(1)
    assert_same_bits(same.net.learnable[0].data, first.net.learnable[0].data)
    before = [array.copy() for array in (other.net.learnable[0].data, *other.history)]
    for call in (lambda: other.restore(state), lambda: other.load_weights(model)):
        with pytest.raises(SolvergenError, match=r"'beside', is read-only in the net and has other numbers"):
            call()
    for array, was in zip((other.net.learnable[0].data, *other.history), before, strict=True):
        assert_same_bits(array, was)


def test_a_state_of_a_parameter_without_axes_becomes_an_optimizers(tmp_path):
    settings = {"base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "type": "Adam"}
    to = {"snapshot_prefix": str(tmp_path / "s"), "snapshot_format": "SAFETENSORS"}
    solver = Solver(SolverParameters(**settings, **to), OfAxes((), (2, 3)), backend="numpy")
    solver.step(2)
    state, model = files.read_pair(solver.snapshot()[1])
    optimizer, _ = optimizer_of(state, model, "caffe_adam", chosen=None, source="it")
    for name, number in (("history", 0), ("history2", 2)):
        assert_same_bits(optimizer.state[name]["w0"], solver.history[number])
        assert_same_bits(optimizer.state[name]["w1"], solver.history[number + 1])
