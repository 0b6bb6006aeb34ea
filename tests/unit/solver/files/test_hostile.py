"""Files that nobody of good will has written, and targets that can't be: errors that say so, nothing half
done, and no program run."""

from __future__ import annotations

import pickle
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.errors import SolverFileError, SolvergenError
from solvergen.solver import DenseNet, InnerProduct, Solver, SolverParameters
from solvergen.solver.choice import optimizer_of
from solvergen.solver.files import read_state, write_pair
from solvergen.solver.files.converting import convert
from solvergen.solver.files.data import LayerData, ModelData, SolverStateData
from solvergen.solver.files.file_names import Pair
from solvergen.solver.files.optimizers import definition_of_spec, left_behind
from solvergen.solver.files.pair import write_model, write_pair_at
from solvergen.solver.files.request import Conventions, Request
from solvergen.solver.net.dense import Param

W, B = np.full((2, 3), 0.5, np.float32), np.zeros(2, np.float32)
MODEL = ModelData("m", (LayerData("ip", "InnerProduct", (W, B), names=("ip.weight", "ip.bias")),))
NAMES = ["ip.weight", "ip.bias"]
GROUP = {"members": NAMES, "hyperparameters": {"lr": 0.1}, "options": {"l1": False}, "multipliers": {}}
EXTRA = {
    "solver_type": "SGD",
    "digest": definition_of_spec("caffe_sgd").digest,
    "states": ["history"],
    "parameters": NAMES,
    "counts": dict.fromkeys(NAMES, 5),
    "scalars": {},
    "lines": {},
    "shared": {},
    "groups": [GROUP],
    "policy": {"name": "fixed", "state": {}},
    "smoothed_loss": None,
    "data": [None],
    "random": [None],
}


def written(tmp_path: Path, **extra: Any) -> str:
    state = SolverStateData(5, None, (W, B), 0, {**EXTRA, **extra})
    return write_pair(str(tmp_path / "s"), 5, MODEL, state, "SAFETENSORS")[1]


def solver() -> Solver:
    layers = [InnerProduct("ip", 2, weights=Param("ip.weight"), bias=Param("ip.bias"))]
    net = DenseNet(np.ones((4, 3)), np.ones((4, 2)), layers, batch_size=2)
    params = SolverParameters(base_lr=0.1, lr_policy="fixed", momentum=0.9, max_iter=9, solver_mode="CPU")
    return Solver(params, net, backend="numpy")


def test_the_sound_one_is_taken(tmp_path):
    path = written(tmp_path)
    solver().restore(path)
    convert(path, str(tmp_path / "o.safetensors"), Request(form="optimizer"))


@pytest.mark.parametrize(
    "extra",
    [
        {"groups": 5},
        {"groups": [{}]},
        {"groups": []},
        {"groups": [{**GROUP, "members": ["zz"]}]},
        {"groups": [GROUP, GROUP]},
        {"groups": [{**GROUP, "hyperparameters": {"lr": "x"}}]},
        {"groups": [{**GROUP, "multipliers": {"lr_mult": "x"}}]},
        {"counts": 5},
        {"counts": {}},
        {"counts": dict.fromkeys(NAMES, -1)},
        {"counts": dict.fromkeys(NAMES, 10**30)},
        {"parameters": 5},
        {"parameters": [1, 2]},
        {"parameters": []},
        {"parameters": ["ip.weight", "ip.weight"]},
        {"states": 5},
        {"scalars": 5},
        {"lines": {"x": 1}},
        {"shared": {"x": "y"}},
        {"solver_type": 5},
        {"digest": 5},
        {"policy": 5},
        {"policy": {}},
        {"policy": {"name": "fixed", "state": 5}},
        {"smoothed_loss": 5},
        {"smoothed_loss": {"start": 0, "value": "x", "losses": []}},
        {"data": 5},
        {"random": 5},
    ],
    ids=str,
)
def test_entries_that_the_solver_never_writes(tmp_path, extra):
    path = written(tmp_path, **extra)
    with pytest.raises(SolverFileError, match="damaged or foreign"):
        read_state(path)
    with pytest.raises(SolvergenError):
        solver().restore(path)
    with pytest.raises(SolverFileError):
        convert(path, str(tmp_path / "o.safetensors"), Request(form="optimizer"))
    assert not (tmp_path / "o.safetensors").exists()


def test_entries_that_are_missing(tmp_path):
    state = SolverStateData(5, None, (W, B), 0, {k: v for k, v in EXTRA.items() if k != "shared"})
    path = write_pair(str(tmp_path / "s"), 5, MODEL, state, "SAFETENSORS")[1]
    with pytest.raises(SolvergenError, match="it has no shared"):
        solver().restore(path)


@pytest.mark.parametrize("stem", ["a", "a_iter_5", "a_iter_007"])
@pytest.mark.parametrize("ending", [".caffemodel .solverstate", ".model.safetensors .state.safetensors"])
def test_a_pair_that_cant_be_written_leaves_the_one_before(tmp_path, stem, ending):
    of_model, of_state = (str(tmp_path / stem) + end for end in ending.split())
    names = Pair(5, of_model, of_state)
    write_pair_at(names, MODEL, SolverStateData(5, None, (W, B)))
    before = [Path(path).read_bytes() for path in (of_model, of_state)]
    other = ModelData("m", (LayerData("ip", "InnerProduct", (2 * W, B)),))
    with pytest.raises(SolverFileError):
        write_pair_at(names, other, SolverStateData(6, None, (W.astype(np.int32),)))
    assert [Path(path).read_bytes() for path in (of_model, of_state)] == before
    assert len(list(tmp_path.iterdir())) == 2
    write_pair_at(names, other, SolverStateData(6, None, (W, B)))
    assert read_state(of_state).iter == 6


@pytest.mark.parametrize(
    ("layers", "match"),
    [
        ([LayerData("c", "", (W,)), LayerData("c", "", (B,))], "two parameters are called 'c.0'"),
        ([LayerData("a.b", "", (W,)), LayerData("a", "", (B,), names=("a.b.0",))], "called 'a.b.0'"),
        ([LayerData("a\udcff", "", (W,))], "isn't text"),
        ([LayerData("net", "", (W,), names=("__metadata__",))], "can't hold an array called __metadata__"),
    ],
    ids=["layers", "names", "text", "metadata"],
)
def test_names_that_files_by_name_cant_hold(tmp_path, layers, match):
    path = tmp_path / "x.model.safetensors"
    write_model(path, ModelData("m", tuple(layers)))
    with pytest.raises(SolverFileError, match=match):
        convert(str(path), str(tmp_path / "out.safetensors"), Request(form="torch"))
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_hdf5_has_names_of_characters(tmp_path):
    with pytest.raises(SolverFileError, match="can't have a group named"):
        write_model(tmp_path / "x.caffemodel.h5", ModelData("m", (LayerData("a\udcff", "", (W,)),)))


def test_safetensors_of_other_types(tmp_path):
    path, target = tmp_path / "x.safetensors", tmp_path / "out.caffemodel"
    header = b'{"a":{"dtype":"F8_E4M3","shape":[2],"data_offsets":[0,2]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(2))
    with pytest.raises(SolverFileError, match="'a' is F8_E4M3; models hold"):
        convert(str(path), str(target))
    assert not target.exists()


def test_the_solvers_files_arent_called_as_torchs(tmp_path):
    with pytest.raises(SolverFileError, match=r"\.pt and \.pth are torch's files"):
        convert(written(tmp_path), str(tmp_path / "s.pt"), Request(form="solver", alone=True))


def test_what_surrounds_the_rule_in_a_solver_file_stays_behind(tmp_path):
    told = {"base_lr": 0.1, "lr_policy": "fixed", "solver_mode": "CPU", "momentum": 0.9, "iter_size": 2}
    chosen = optimizer_of(SolverParameters(**told, clip_gradients=1.0, weight_decay=0.1))
    said = convert(written(tmp_path), str(tmp_path / "o.h5"), Request(form="optimizer", chosen=chosen))
    assert "clip_gradients, iter_size of the solver file stays behind: solvergen.Wrappers can do it" in said
    chosen = optimizer_of(
        SolverParameters(optimizer="Adam", weight_decay=0.1, base_lr=0.1, lr_policy="fixed")
    )
    assert left_behind(chosen) == [
        "weight_decay of the solver file stays behind: solvergen.Wrappers can do it"
    ]
    chosen = optimizer_of(SolverParameters(**told, constraints={"a.w": "NonNegative"}))
    assert left_behind(chosen) == [
        "iter_size of the solver file stays behind: solvergen.Wrappers can do it",
        "constraints of 'a.w' in the solver file stay behind: opt.constraint takes them",
    ]


class TestTorch:
    @pytest.fixture(autouse=True)
    def _torch(self) -> None:
        self.torch = pytest.importorskip("torch")
        from solvergen.adapters import torch_files

        self.files = torch_files

    def converted(self, path: Path, *, to: str = "out.model.safetensors", **more: Any) -> tuple[str, ...]:
        target = path.parent / to
        return convert(str(path), str(target), Request(force=True, torch=lambda: self.files, **more))

    def refused(self, path: Path, match: str, **more: Any) -> None:
        with pytest.raises(SolverFileError, match=match):
            self.converted(path, **more)
        assert not list(path.parent.glob("out*"))

    def test_tensors_that_arent_numbers_in_memory(self, tmp_path):
        torch, path = self.torch, tmp_path / "x.pt"
        for value, match in (
            ({1: torch.zeros(2)}, "a state_dict has names"),
            ({"a": torch.zeros(1).expand(10**13)}, "no numbers for it"),
            ({"a": torch.zeros(3, device="meta")}, "a meta tensor"),
            ({"a": torch.eye(3).to_sparse()}, "a sparse_coo tensor"),
            ({"a": torch.zeros(3, dtype=torch.complex64)}, "models hold real floating numbers"),
        ):
            torch.save(value, path)
            self.refused(path, match)
        torch.save({"a": torch._neg_view(torch.ones(3)), "b": torch.ones(1).expand(3)}, path)
        assert self.converted(path)

    def test_nothing_is_run_and_what_is_cut_is_told(self, tmp_path):
        class Hostile:
            def __reduce__(self) -> Any:
                return Path.touch, (tmp_path / "run",)

        path = tmp_path / "x.pt"
        for protocol in (0, 2, 4):
            path.write_bytes(pickle.dumps({"a": Hostile()}, protocol))
            self.refused(path, "could run any program|can't read it|not what torch.save writes")
        self.torch.save({"a": Hostile()}, path)
        self.refused(path, "could run any program")
        self.torch.save({"a": self.torch.ones(50)}, path, _use_new_zipfile_serialization=False)
        whole = path.read_bytes()
        for length in range(0, len(whole), 23):
            path.write_bytes(whole[:length])
            self.refused(path, "can't read it|could run any program" if length else "empty")
        assert not (tmp_path / "run").exists()

    def test_an_archive_that_would_become_far_more(self, tmp_path):
        path = tmp_path / "x.pt"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x/data.pkl", bytes(50_000_000))
        self.refused(path, "that would become 50000000")

    def test_folders_and_pipes(self, tmp_path):
        import os

        os.mkfifo(tmp_path / "pipe.pt")
        (tmp_path / "folder.pt").mkdir()
        self.refused(tmp_path / "pipe.pt", "not a regular file")
        self.refused(tmp_path / "folder.pt", "a folder")

    def optimizer(self, tmp_path: Path, cls: str = "Adam", **settings: Any) -> tuple[Path, dict[str, Any]]:
        torch = self.torch
        module = torch.nn.Linear(3, 2)
        optimizer = getattr(torch.optim, cls)(module.parameters(), **settings)
        module(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        torch.save(module.state_dict(), tmp_path / "x.model.pt")
        return tmp_path / "x.optimizer.pt", optimizer.state_dict()

    @pytest.mark.parametrize(
        ("change", "match"),
        [
            ({"param_names": 5}, "a list of names"),
            ({"param_names": ["a"]}, "1 names for 2"),
            ({"param_names": ["a", "a"]}, "two parameters of one name"),
            ({"lr": 10**400}, "lr of a group"),
            ({"lr": float("nan")}, "lr of a group"),
            ({"betas": ("a", "b")}, "beta1 of a group"),
        ],
    )
    def test_settings_that_arent(self, tmp_path, change, match):
        path, found = self.optimizer(tmp_path)
        found["param_groups"][0].update(change)
        self.torch.save(found, path)
        self.refused(path, match, to="out.state.safetensors")

    @pytest.mark.parametrize("step", [-1.0, 1e30])
    def test_steps_that_arent(self, tmp_path, step):
        path, found = self.optimizer(tmp_path)
        found["state"][0]["step"] = self.torch.tensor(step)
        self.torch.save(found, path)
        self.refused(path, "no number of updates", to="out.state.safetensors")

    def test_which_of_those_with_adams_states(self, tmp_path):
        for cls, wanted in (("Adam", "adam"), ("AdamW", "adamw")):
            path, found = self.optimizer(tmp_path, cls, lr=self.torch.tensor(0.5), foreach=False)
            self.torch.save(found, path)
            said = self.converted(path, to="o.safetensors", form="optimizer")
            assert said[0].partition(": ")[2].startswith(f"a snapshot of {wanted} for")
            self.converted(path, to="ok.state.safetensors")
            extra = read_state(tmp_path / "ok.state.safetensors").extra
            assert extra["groups"][0]["hyperparameters"]["lr"] == 0.5
            for one in tmp_path.glob("o*"):
                one.unlink()
        del found["param_groups"][0]["decoupled_weight_decay"]
        self.torch.save(found, path)
        self.refused(path, "give --from adam or adamw", to="out.state.safetensors")
        self.converted(path, to="ok.state.safetensors", spec="adamw")
        path, found = self.optimizer(tmp_path, "RAdam")
        self.torch.save(found, path)
        self.refused(path, "aren't Adam's", to="out.state.safetensors")

    def test_a_rule_that_torch_lacks_leaves_no_model(self, tmp_path):
        path = written(tmp_path)
        for conventions in (None, Conventions(None, "caffe_nesterov")):
            request = Request(torch=lambda: self.files, conventions=conventions)
            with pytest.raises(SolverFileError, match="torch has no optimizer"):
                convert(path, str(tmp_path / "t.optimizer.pt"), request)
            assert not list(tmp_path.glob("t*"))

    def test_nesterov_and_l1(self, tmp_path):
        group = {**GROUP, "hyperparameters": {"lr": 0.1, "weight_decay": 0.5}, "options": {"l1": True}}
        digest = definition_of_spec("caffe_nesterov").digest
        path = written(tmp_path, solver_type="Nesterov", digest=digest, groups=[group])
        target = tmp_path / "t.optimizer.pt"
        told = {"base_lr": 0.1, "lr_policy": "fixed", "type": "Nesterov", "momentum": 0.9}
        chosen = optimizer_of(SolverParameters(**told, weight_decay=0.5, regularization_type="L1"))
        for given in (None, chosen):
            request = Request(
                torch=lambda: self.files, conventions=Conventions(None, "sgd", 0.1), force=True, chosen=given
            )
            said = convert(path, str(target), request)
            assert "weight_decay stays behind: it is of L1, and that of sgd of L2" in said
            settings = self.torch.load(target, weights_only=True)["param_groups"][0]
            assert settings["nesterov"] is True
            assert settings["weight_decay"] == 0
        # One step of Caffe's, and one of torch's from the same place.
        weight, gradient, lr, momentum = np.float64(1.5), np.float64(0.25), 0.1, 0.9
        history = 0.5
        new = momentum * history + lr * gradient
        theirs = weight - ((1 + momentum) * new - momentum * history)
        parameter = self.torch.nn.Parameter(self.torch.tensor([weight]))
        optimizer = self.torch.optim.SGD([parameter], lr=lr, momentum=momentum, nesterov=True)
        optimizer.state[parameter]["momentum_buffer"] = self.torch.tensor([history / lr])
        parameter.grad = self.torch.tensor([gradient])
        optimizer.step()
        assert float(parameter.detach()[0]) == pytest.approx(theirs, rel=1e-12)

    def test_a_full_disk(self, tmp_path):
        import signal

        resource = pytest.importorskip("resource")
        path = written(tmp_path)
        to_sgd = Conventions(None, "sgd", 0.1)
        request = Request(torch=lambda: self.files, conventions=to_sgd, force=True)
        target = tmp_path / "t.optimizer.pt"
        convert(path, str(target), request)
        before = {one: one.read_bytes() for one in tmp_path.iterdir()}
        former, limit = (
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN),
            resource.getrlimit(resource.RLIMIT_FSIZE),
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (1500, limit[1]))
        try:
            with pytest.raises(SolverFileError, match=r"can't be written: File too large"):
                convert(path, str(target), request)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            signal.signal(signal.SIGXFSZ, former)
        assert {one: one.read_bytes() for one in tmp_path.iterdir()} == before


def test_after_a_full_disk_a_process_ends_well(tmp_path):
    pytest.importorskip("resource")
    program = f"""
import resource, signal
import numpy as np
from solvergen.errors import SolverFileError
from solvergen.solver.files.data import LayerData, ModelData
from solvergen.solver.files.pair import write_model
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
model = ModelData("m", (LayerData("a", "", (np.ones(9999),)),))
try:
    write_model({str(tmp_path / "m.caffemodel.h5")!r}, model)
except SolverFileError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "can't be written: File too large" in done.stdout
    assert done.returncode == 0  # the library of HDF5 crashes at the end if anything of its own is left
