"""Solvers' files, optimizers' snapshots and torch's state_dicts into each other."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.constraints import NonNegative
from solvergen.errors import SnapshotError, SolvergenError
from solvergen.optimizers import SGD, AdamMini, CaffeAdam, CaffeSGD
from solvergen.runtime import snapshots
from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters
from solvergen.solver.files import read_model, read_pair, read_state
from solvergen.solver.files.converting import convert
from solvergen.solver.files.data import LayerData
from solvergen.solver.files.parameter_names import model_of, named, names_of, owned
from solvergen.solver.files.request import Conventions, Request
from solvergen.solver.net.dense import Param
from solvergen.solver.training.events import Collected, Warned

RNG = np.random.default_rng(5)
X, Y = RNG.standard_normal((12, 4)), RNG.standard_normal((12, 2))


def net(dtype=np.float32, tied=False):
    shared = Param("w", lr_mult=2, decay_mult=0) if tied else Param(lr_mult=2, decay_mult=0)
    layers = [
        InnerProduct("a", 4, "tanh", weights=shared),
        InnerProduct("b", 4, "tanh", weights=shared),
        InnerProduct("c", 2),
    ]
    return DenseNet(X, Y, layers, batch_size=4, dtype=dtype)


def solver(tmp_path, form="SAFETENSORS", *, of=None, log=None, **more):
    params = SolverParameters(
        base_lr=0.125, lr_policy="step", gamma=0.5, stepsize=3, max_iter=9, solver_mode="CPU",
        snapshot_prefix=str(tmp_path / "s"), snapshot_format=form, **more,
    )  # fmt: skip
    return Solver(params, of or net(), backend="numpy", log=log)


def gradients(of):
    of.clear_diffs()
    of.forward_backward()
    return {blob.name: blob.diff for blob in of.learnable}


RULES = [
    {"type": "SGD", "momentum": 0.9, "weight_decay": 0.01, "clip_gradients": 1.0},
    {"type": "Adam", "momentum": 0.9, "momentum2": 0.99, "delta": 1e-6},
    {"optimizer": "AdamW", "hyperparameters": {"weight_decay": 0.1, "amsgrad": True}},
    {"optimizer": "NAdam"},
    {"optimizer": "SM3"},
    {"optimizer": "Prodigy"},
    {"optimizer": "AdamMini"},
    {"optimizer": "SAM"},
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("optimizer") or rule["type"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_native_state_becomes_an_optimizer_that_goes_on_alike(tmp_path, rule, tied):
    one = solver(tmp_path, of=net(tied=tied), **rule)
    one.step(5)
    _, state = one.snapshot()
    target = tmp_path / "o.safetensors"
    said = convert(state, str(target), Request(form="optimizer"))
    assert said[0].startswith(f"{target}: ")
    other = net(tied=tied)
    groups = {}
    for blob in other.learnable:
        groups.setdefault((blob.lr_mult, blob.decay_mult), {})[blob.name] = blob.data
    has_decay = "weight_decay" in type(one.optimizer).definition.hyperparameter_names or rule.get(
        "weight_decay"
    )
    settings = [
        {"params": params, "lr_mult": lr, **({"decay_mult": decay} if has_decay else {})}
        for (lr, decay), params in groups.items()
    ]
    cls = one._choice.optimizer_class
    optimizer = cls(settings, backend="numpy", **one._choice.options)
    optimizer.load(target)
    for mine, theirs in zip(other.learnable, one.net.learnable, strict=True):
        np.testing.assert_array_equal(mine.data, theirs.data)
    assert set(optimizer.steps.values()) == {5}
    for name, values in optimizer.state.items():
        for parameter, value in values.items():
            np.testing.assert_array_equal(value, one.optimizer.state[name][parameter])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.get("optimizer") or rule["type"])
@pytest.mark.parametrize("tied", [False, True])
def test_there_and_back_a_run_ends_with_the_same_bits(tmp_path, rule, tied):
    whole = solver(tmp_path, of=net(tied=tied), **rule)
    whole.step(9)
    first = solver(tmp_path, of=net(tied=tied), **rule)
    first.step(4)
    _, state = first.snapshot()
    place = first.net.position()
    between, back = str(tmp_path / "o.h5"), str(tmp_path / "back_iter_4.state.safetensors")
    convert(state, between, Request(form="optimizer"))
    convert(between, back)
    log = Collected()
    second = solver(tmp_path, of=net(tied=tied), log=log, **rule)
    second.restore(back)
    assert second.iter == 4
    told = [event.text for event in log.events if isinstance(event, Warned)]
    assert not any("ignoring layer" in text or "there is no layer" in text for text in told)
    second.net.seek(place)
    second.step(5)
    for mine, theirs in zip(second.net.learnable, whole.net.learnable, strict=True):
        np.testing.assert_array_equal(mine.data, theirs.data)


def test_an_optimizers_snapshot_becomes_caffes_files(tmp_path):
    of = net()
    optimizer = CaffeAdam(
        {blob.name: blob.data for blob in of.learnable}, backend="numpy", lr=0.125, momentum=0.9
    )
    for _ in range(3):
        optimizer.step(gradients(of))
    optimizer.save(tmp_path / "o.safetensors")
    target = str(tmp_path / "x_iter_3.solverstate")
    said = convert(str(tmp_path / "o.safetensors"), target)
    assert any("left out" in text for text in said)
    state, model = read_pair(target)
    assert (state.iter, len(state.history)) == (3, 12)
    second = solver(tmp_path, of=net(), type="Adam", momentum=0.9)
    second.restore(target)
    for blob, theirs in zip(second.net.learnable, of.learnable, strict=True):
        np.testing.assert_array_equal(blob.data, theirs.data)
        np.testing.assert_array_equal(
            second.optimizer.state["history2"][blob.name], optimizer.state["history2"][blob.name]
        )
    assert [layer.name for layer in model.layers] == ["a", "b", "c"]


def test_wrappers_stay_behind(tmp_path):
    from solvergen.errors import SnapshotWarning
    from solvergen.runtime.wrappers import Wrappers

    of = net()
    optimizer = CaffeSGD(
        {blob.name: blob.data for blob in of.learnable},
        backend="numpy",
        momentum=0.9,
        wrappers=Wrappers(average=0.9),
    )
    optimizer.step(gradients(of))
    optimizer.save(tmp_path / "o.safetensors")
    with pytest.warns(SnapshotWarning, match="with wrappers, which are left out, and with them wrap_average"):
        convert(str(tmp_path / "o.safetensors"), str(tmp_path / "s_iter_1.state.safetensors"))
    assert read_state(tmp_path / "s_iter_1.state.safetensors").extra["states"] == ["history"]


def test_what_a_solver_doesnt_have_is_said(tmp_path):
    optimizer = SGD({"a.w": np.ones((2, 3)), "a.b": np.ones(2)}, backend="numpy", momentum=0.9)
    optimizer.freeze("a.b")
    optimizer.constraint = {"a.w": NonNegative()}
    optimizer.step({"a.w": np.ones((2, 3)), "a.b": np.ones(2)})
    optimizer.save(tmp_path / "o.h5")
    said = convert(str(tmp_path / "o.h5"), str(tmp_path / "s_iter_1.state.safetensors"))
    assert any("the constraints of 'a.w' stay behind" in text for text in said), said
    assert any("'a.b' was frozen" in text for text in said), said


def test_blocks_come_along(tmp_path):
    params = {"q.w": np.ones((4, 3)), "q.b": np.ones(4)}
    mini = AdamMini(params, blocks={"q.w": 2}, backend="numpy")
    mini.step({"q.w": RNG.standard_normal((4, 3)), "q.b": np.ones(4)})
    mini.save(tmp_path / "m.h5", params=True)
    state = str(tmp_path / "m_iter_1.state.safetensors")
    convert(str(tmp_path / "m.h5"), state)
    assert read_state(state).extra["blocks"] == {"q.w": 2}
    convert(state, str(tmp_path / "back.h5"), Request(form="optimizer"))
    back = AdamMini(params, blocks={"q.w": 2}, backend="numpy")
    back.load(tmp_path / "back.h5")
    for name, values in mini.state.items():
        for parameter, value in values.items():
            np.testing.assert_array_equal(back.state[name][parameter], value)


@pytest.mark.parametrize("form", ["BINARYPROTO", "HDF5"])
def test_caffes_files_take_hyperparameters_from_the_solver_file(tmp_path, form):
    from solvergen.solver.choice import optimizer_of

    one = solver(tmp_path, form, type="SGD", momentum=0.9)
    one.step(2)
    _, state = one.snapshot()
    bare, told = str(tmp_path / "bare.h5"), str(tmp_path / "told.h5")
    with pytest.raises(SnapshotError, match="give --from"):
        convert(state, bare, Request(form="optimizer"))
    said = convert(state, bare, Request(form="optimizer", spec="caffe_sgd"))
    assert any("hyperparameters are the defaults" in text for text in said)
    convert(state, told, Request(form="optimizer", chosen=optimizer_of(one.param)))
    # The solver file may be of what it is to become.
    becoming = Request(
        form="optimizer", chosen=optimizer_of(one.param), conventions=Conventions(None, "caffe_sgd")
    )
    with pytest.raises(SnapshotError, match="give --from"):
        convert(state, str(tmp_path / "other.h5"), becoming)
    found, default = (snapshots.load(path).groups[0].hyperparameters for path in (told, bare))
    assert (found["momentum"], found["lr"]) == (float(np.float32(0.9)), 0.125)
    assert default["momentum"] == 0.0
    data = snapshots.load(told)
    names = {"BINARYPROTO": ["a.weight", "a.bias"], "HDF5": ["a.0", "a.1"]}[form]
    assert [tensor.name for tensor in data.tensors][:2] == names
    for tensor, blob in zip(data.tensors, one.net.learnable, strict=True):
        np.testing.assert_array_equal(tensor.param, blob.data)
        np.testing.assert_array_equal(tensor.arrays["history"], one.optimizer.state["history"][blob.name])
        assert tensor.t == 2


def test_to_another_rule_hyperparameters_and_counts_go_along(tmp_path):
    one = solver(tmp_path, type="Adam", momentum=0.75, momentum2=0.875, delta=0.0625)
    one.step(4)
    _, state = one.snapshot()
    target = str(tmp_path / "o.h5")
    convert(state, target, Request(form="optimizer", conventions=Conventions(None, "adam")))
    data = snapshots.load(target)
    assert data.spec == "adam"
    found = data.groups[0].hyperparameters
    assert (found["beta1"], found["beta2"], found["eps"]) == (0.75, 0.875, 0.0625)
    assert {tensor.t for tensor in data.tensors} == {4}
    assert [group.multipliers["lr_mult"] for group in data.groups] == [2.0, 1.0]


def test_a_state_of_other_order_is_the_same_state(tmp_path):
    of = net()
    params = {blob.name: blob.data for blob in reversed(of.learnable)}
    optimizer = CaffeSGD(params, backend="numpy", momentum=0.9)
    optimizer.step(gradients(of))
    optimizer.save(tmp_path / "o.h5")
    target = str(tmp_path / "s_iter_1.state.safetensors")
    convert(str(tmp_path / "o.h5"), target, Request(alone=True))
    second = solver(tmp_path, type="SGD", momentum=0.9)
    second.restore(target)
    for name, value in optimizer.state["history"].items():
        np.testing.assert_array_equal(second.optimizer.state["history"][name], value)


def test_what_is_refused(tmp_path):
    one = solver(tmp_path, type="SGD", momentum=0.9)
    one.step(1)
    model, state = one.snapshot()
    optimizer = SGD([np.zeros(3, np.float32)], backend="numpy")
    optimizer.save(tmp_path / "mine.h5", params=False)
    for source, target, wanted, words in (
        (model, "m.h5", Request(form="optimizer"), "weights alone are no optimizer's snapshot"),
        (state, "x.solverstate.h5", Request(form="optimizer"), "the name is that of a solver's file"),
        (state, "x.h5", Request(form="optimizer", spec="caffe_adam"), "incorrect length of history"),
        (
            state,
            "x.h5",
            Request(form="optimizer", spec="caffe_sdg"),
            "no optimizer 'caffe_sdg'; did you mean",
        ),
        (model, "x.txt", Request(form="torch"), "end in .pt, .pth or .safetensors"),
        (state, "x.safetensors", Request(form="torch"), "end in .pt or .pth"),
        (state, "x.pt", Request(), "the name must end in .optimizer.pt"),
        (state, "x.optimizer.pt", Request(alone=True), "hand over solvergen.adapters.torch_files"),
        (state, "s_iter_1.model.safetensors", Request(form="optimizer", force=True), "of a solver's file"),
    ):
        with pytest.raises(SolvergenError, match=words):
            convert(source, str(tmp_path / target), wanted)
    said = convert(str(tmp_path / "mine.h5"), str(tmp_path / "t_iter_0.state.safetensors"))
    assert "it holds no parameters, so there is no model" in said
    (tmp_path / "there.h5").touch()
    with pytest.raises(SolvergenError, match="is there already"):
        convert(state, str(tmp_path / "there.h5"), Request(form="optimizer"))


class TestNames:
    def test_usual_ones_by_type(self):
        two = (np.zeros(1), np.zeros(2))
        assert names_of(LayerData("c", "Convolution", two)) == ("c.weight", "c.bias")
        assert names_of(LayerData("c", "Unheard", two)) == ("c.0", "c.1")
        assert names_of(LayerData("n", "BatchNorm2d", two)) == ("n.running_mean", "n.running_var")
        assert names_of(LayerData("n", "BatchNorm", (*two, np.zeros(1)))) == ("n.0", "n.1", "n.2")
        assert names_of(LayerData("n", "Linear", two, names=("x", "y"))) == ("x", "y")

    def test_layers_out_of_names(self):
        arrays = {"a.b.weight": np.zeros(1), "a.b.bias": np.zeros(2), "scale": np.zeros(3)}
        model = model_of(arrays)
        assert [(layer.name, layer.names) for layer in model.layers] == [
            ("a.b", ("a.b.weight", "a.b.bias")),
            ("net", ("scale",)),
        ]
        assert named(model) == arrays

    def test_what_is_shared_has_two_names_and_one_owner(self):
        shared = np.zeros(2)
        model = model_of({"a.w": shared, "b.w": shared})
        assert list(named(model)) == ["a.w", "b.w"]
        assert list(owned(model)) == ["a.w"]


def test_weights_as_plain_safetensors(tmp_path):
    library = pytest.importorskip("safetensors.numpy")
    one = solver(tmp_path, of=net(tied=True))
    model, _ = one.snapshot()
    plain = str(tmp_path / "w.safetensors")
    convert(model, plain, Request(form="torch"))
    found = library.load_file(plain)
    assert sorted(found) == ["a.bias", "b.bias", "c.bias", "c.weights", "w"]
    np.testing.assert_array_equal(found["w"], one.net.learnable[0].data)
    back = str(tmp_path / "back.model.safetensors")
    convert(plain, back)
    assert set(named(read_model(back))) == set(found)


class TestTorch:
    @pytest.fixture(autouse=True)
    def imported(self):
        self.torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
        from solvergen.adapters import torch_files

        self.files = lambda: torch_files

    def module(self):
        torch = self.torch
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Tanh(), torch.nn.Linear(3, 2)
        )

    def net(self, module):
        from solvergen.adapters.torch_net import Batches, TorchNet

        x, y = (self.torch.tensor(a, dtype=self.torch.float32) for a in (X, Y))
        return TorchNet(module, self.torch.nn.functional.mse_loss, Batches(x, y, batch_size=4))

    def solver(self, tmp_path, **more):
        return solver(tmp_path, of=self.net(self.module()), **more)

    @pytest.mark.parametrize("ending", ["w.pt", "w.pth", "w.safetensors"])
    def test_a_module_loads_it(self, tmp_path, ending):
        torch = self.torch
        one = self.solver(tmp_path, momentum=0.9)
        one.step(3)
        model, _ = one.snapshot()
        target = str(tmp_path / ending)
        convert(model, target, Request(form="torch", torch=self.files))
        if ending.endswith("safetensors"):
            from safetensors.torch import load_file

            found = load_file(target)
        else:
            found = torch.load(target, weights_only=True)
        other = self.module()
        other.load_state_dict(found)
        trained = one.net.module.state_dict()
        for name, value in other.state_dict().items():
            if not name.endswith("num_batches_tracked"):
                assert bool((value == trained[name]).all())
        back = str(tmp_path / "back.model.safetensors")
        convert(target, back, Request(torch=self.files))
        second = self.solver(tmp_path, momentum=0.9)
        second.load_weights(back)
        for mine, theirs in zip(second.net.learnable, one.net.learnable, strict=True):
            np.testing.assert_array_equal(mine.data, theirs.data)

    @pytest.mark.parametrize(
        ("rule", "to", "cls"),
        [
            ({"optimizer": "SGD", "hyperparameters": {"momentum": 0.5}}, None, "SGD"),
            ({"type": "SGD", "momentum": 0.5}, "sgd", "SGD"),
            ({"type": "Adam", "momentum": 0.5}, "adam", "Adam"),
            ({"optimizer": "AdamW"}, None, "AdamW"),
            ({"optimizer": "Adagrad"}, None, "Adagrad"),
            ({"optimizer": "RMSprop"}, None, "RMSprop"),
            ({"optimizer": "Adadelta"}, None, "Adadelta"),
        ],
    )
    def test_torch_goes_on_where_the_solver_was_and_back(self, tmp_path, rule, to, cls):
        torch = self.torch
        one = self.solver(tmp_path, **rule)
        one.step(3)
        _, state = one.snapshot()
        target = str(tmp_path / "t.optimizer.pt")
        conventions = None if to is None else Conventions(None, to, lr=0.125)
        convert(state, target, Request(conventions=conventions, torch=self.files))
        module = self.module()
        module.load_state_dict(torch.load(tmp_path / "t.model.pt", weights_only=True))
        optimizer = getattr(torch.optim, cls)(module.parameters(), lr=1.0)
        optimizer.load_state_dict(torch.load(target, weights_only=True))
        # the rate of the third update: the policy's next step is for the fourth
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.125)
        if to is None:
            one.step(1)
            place = one.net.position()["row"] - 4
            rows = np.arange(place, place + 4) % 12
            x, y = (torch.tensor(a[rows], dtype=torch.float32) for a in (X, Y))
            optimizer.param_groups[0]["lr"] = 0.0625
            torch.nn.functional.mse_loss(module(x), y).backward()
            optimizer.step()
            for blob, parameter in zip(one.net.learnable, module.parameters(), strict=True):
                np.testing.assert_allclose(blob.data, parameter.detach().numpy(), rtol=2e-4, atol=2e-6)
        # And back: what torch saves itself, names and all.
        torch.save(optimizer.state_dict(), tmp_path / "u.optimizer.pt")
        torch.save(module.state_dict(), tmp_path / "u.model.pt")
        back = str(tmp_path / "u_iter_3.state.safetensors")
        convert(str(tmp_path / "u.optimizer.pt"), back, Request(torch=self.files))
        assert read_state(back).extra["solver_type"] == cls
        more = {"hyperparameters": {"momentum": 0.5}} if cls == "SGD" else {}
        after = self.solver(tmp_path, optimizer=cls, **more)
        after.restore(back)
        for blob, parameter in zip(after.net.learnable, module.parameters(), strict=True):
            np.testing.assert_array_equal(blob.data, parameter.detach().numpy())
            entry = optimizer.state[parameter]
            for name, values in after.optimizer.state.items():
                theirs = {"state_sum": "sum"}.get(name, name)
                np.testing.assert_array_equal(values[blob.name], entry[theirs].numpy())
        if cls != "SGD":
            assert after.iter == 3 + (to is None)

    def test_caffes_state_of_a_net_with_running_means(self, tmp_path):
        """Which blobs are learned their names tell; the rule and its settings are the solver file's."""
        from solvergen.solver.choice import optimizer_of

        torch = self.torch
        one = self.solver(tmp_path, form="BINARYPROTO", momentum=0.5)
        one.step(2)
        _, state = one.snapshot()
        target = str(tmp_path / "t.optimizer.pt")
        asked = Request(
            conventions=Conventions(None, "sgd", lr=0.125), chosen=optimizer_of(one.param), torch=self.files
        )
        convert(state, target, asked)
        module = self.module()
        module.load_state_dict(torch.load(tmp_path / "t.model.pt", weights_only=True))
        optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
        optimizer.load_state_dict(torch.load(target, weights_only=True))
        assert optimizer.param_groups[0]["momentum"] == 0.5
        for parameter, history in zip(module.parameters(), read_state(state).history, strict=True):
            held = optimizer.state[parameter]["momentum_buffer"].numpy()
            np.testing.assert_array_equal(held, history / np.float32(0.125))
        said = convert(state, str(tmp_path / "o.safetensors"), Request(form="optimizer", spec="caffe_sgd"))
        assert any("'1.running_mean' and '1.running_var' of its model stay behind" in one for one in said), (
            said
        )
        assert len(snapshots.load(tmp_path / "o.safetensors").tensors) == len(list(module.parameters()))

    def test_what_cant_be_converted_leaves_no_file(self, tmp_path):
        one = self.solver(tmp_path, momentum=0.5)
        _, state = one.snapshot()
        there = sorted(tmp_path.iterdir())
        with pytest.raises(SolvergenError, match="torch has no optimizer with the states of caffe_sgd"):
            convert(state, str(tmp_path / "t.optimizer.pt"), Request(torch=self.files))
        assert sorted(tmp_path.iterdir()) == there

    def test_numbers_of_parameters_are_those_of_the_module(self, tmp_path):
        torch = self.torch
        module = self.module()
        optimizer = torch.optim.Adam(
            [{"params": [module[3].weight], "lr": 0.5}, {"params": [module[0].weight]}], lr=0.25
        )
        module(torch.ones(4, 4)).sum().backward()
        optimizer.step()
        torch.save(optimizer.state_dict(), tmp_path / "u.optimizer.pt")
        with pytest.raises(SolvergenError, match="numbers its parameters, and only the model knows"):
            convert(
                str(tmp_path / "u.optimizer.pt"),
                str(tmp_path / "x_iter_1.solverstate"),
                Request(torch=self.files),
            )
        torch.save(module.state_dict(), tmp_path / "u.model.pt")
        with pytest.raises(SolvergenError, match="of 2 parameters, and the module's state_dict has 6"):
            convert(
                str(tmp_path / "u.optimizer.pt"),
                str(tmp_path / "x_iter_1.solverstate"),
                Request(torch=self.files),
            )

    def test_what_torch_files_may_hold(self, tmp_path):
        torch = self.torch
        request = Request(torch=self.files)
        cases = (
            (
                {"model": {"w": torch.ones(2)}, "epoch": 3},
                "'model' is a dict, not a tensor: save 'model' alone",
            ),
            ([torch.ones(2)], "a list, not a state_dict"),
            ({"f": np.random.RandomState}, "holds more than tensors and plain values"),
            (
                {"state": {0: {"max_exp_avg_sq": torch.ones(2)}}, "param_groups": [{"params": [0]}]},
                "give --from",
            ),
        )
        for content, words in cases:
            torch.save(content, tmp_path / "odd.pt")
            with pytest.raises(SolvergenError, match=words):
                convert(str(tmp_path / "odd.pt"), str(tmp_path / "x.model.safetensors"), request)
        (tmp_path / "odd.pt").write_bytes(b"nothing of the kind")
        with pytest.raises(SolvergenError, match=r"odd\.pt: "):
            convert(str(tmp_path / "odd.pt"), str(tmp_path / "x.model.safetensors"), request)
        with pytest.raises(SolvergenError, match="No such file"):
            convert(str(tmp_path / "none.pt"), str(tmp_path / "x.model.safetensors"), request)

    def test_steps_and_names_that_arent(self, tmp_path):
        torch = self.torch
        entry = {"step": torch.ones(2), "exp_avg": torch.ones(2), "exp_avg_sq": torch.ones(2)}
        for content, words in (
            ({"state": {0: entry}, "param_groups": [{"params": [0], "param_names": ["a"]}]}, "no number of"),
            (
                {"state": {0: {**entry, "step": 1}}, "param_groups": [{"params": [0], "param_names": []}]},
                "0 names for 1 parameters",
            ),
            (
                {
                    "state": {0: {**entry, "step": 1, "exp_avg": 3}},
                    "param_groups": [{"params": [0], "param_names": ["a"]}],
                },
                "isn't a tensor of the shape",
            ),
        ):
            torch.save(content, tmp_path / "odd.pt")
            with pytest.raises(SolvergenError, match=words):
                convert(
                    str(tmp_path / "odd.pt"),
                    str(tmp_path / "x_iter_1.state.safetensors"),
                    Request(torch=self.files),
                )

    def test_bfloat16(self, tmp_path):
        torch = self.torch
        torch.save({"a.weight": torch.full((2, 3), 1.5, dtype=torch.bfloat16)}, tmp_path / "b.pt")
        convert(str(tmp_path / "b.pt"), str(tmp_path / "b.model.safetensors"), Request(torch=self.files))
        (blob,) = read_model(tmp_path / "b.model.safetensors").layers[0].blobs
        assert blob.dtype.name == "bfloat16"
        convert(str(tmp_path / "b.model.safetensors"), str(tmp_path / "c.pt"), Request(torch=self.files))
        assert torch.load(tmp_path / "c.pt", weights_only=True)["a.weight"].dtype == torch.bfloat16
