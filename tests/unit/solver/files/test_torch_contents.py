"""snapshot inspect and diff of what torch.save wrote."""

from __future__ import annotations

import dataclasses
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")

from solvergen.adapters.torch_contents import contents  # noqa: E402
from solvergen.adapters.torch_files import state_from  # noqa: E402
from solvergen.cli.app import run  # noqa: E402
from solvergen.errors import SolverFileError  # noqa: E402
from solvergen.solver.files import ModelData, read_model, write_model, write_pair  # noqa: E402
from solvergen.solver.files.contents import differences  # noqa: E402
from tests.unit.solver.files.caffe_bytes import small_model, small_state  # noqa: E402


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["snapshot", *words])
    out, err = capsys.readouterr()
    return code, out, err


def module() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))


def stepped(of: Any, cls: Any, **more: Any) -> Any:
    optimizer = cls(of.named_parameters() if more.pop("names", False) else of.parameters(), **more)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = of(torch.ones(2, 4)).square().sum() + of[0].weight.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return optimizer


def test_what_convert_wrote_is_what_it_was_made_of(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = write_pair("net", 7, small_model(), small_state(), "SAFETENSORS")
    shared = ("--shared", "two/0=one/0")
    code, _, err = said(capsys, "convert", names[0], "net.pt", *shared)
    assert code == 0, err
    code, _, err = said(capsys, "convert", names[0], "net.model.safetensors", *shared)
    assert code == 0, err
    assert said(capsys, "diff", "net.pt", "net.model.safetensors") == (0, "", "")
    found = torch.load("net.pt", weights_only=True)
    name = next(iter(found))
    found[name].view(-1)[0] += 1
    torch.save(found, "other.pt")
    code, out, _ = said(capsys, "diff", "net.pt", "other.pt")
    assert code == 1
    assert "1 of " in out
    assert "numbers differ, at most 1 apart" in out


def test_a_module(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = module()
    torch.save(of.state_dict(), "m.pth")
    code, out, err = said(capsys, "inspect", "m.pth", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["format"], found["kind"], found["layers"]) == ("TORCH", "model", 2)
    assert [(one["name"], one["shape"], one["dtype"]) for one in found["arrays"]] == [
        ("0.weight", [3, 4], "float32"),
        ("0.bias", [3], "float32"),
        *((f"1.{name}", [3], "float32") for name in ("weight", "bias", "running_mean", "running_var")),
        ("1.num_batches_tracked", [], "int64"),
    ]
    assert found["arrays"][0]["max"] == float(of[0].weight.detach().max())
    code, out, _ = said(capsys, "inspect", "m.pth")
    assert code == 0
    assert out.startswith("path: m.pth\n")


def test_an_optimizer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = module()
    optimizer = stepped(of, torch.optim.AdamW, lr=torch.tensor(0.5), amsgrad=True, names=True)
    torch.save(optimizer.state_dict(), "a.optimizer.pt")
    code, out, err = said(capsys, "inspect", "a.optimizer.pt", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["kind"], found["group 0"][0]) == ("optimizer of torch", "0.weight")
    assert found["group 0.betas"] == [0.9, 0.999]
    single = {one["name"]: (one["shape"], one["max"]) for one in found["arrays"]}
    assert (single["group 0.lr"], single["0.weight.step"]) == (([], 0.5), ([], 1))
    arrays = contents("a.optimizer.pt").arrays
    for key in ("exp_avg", "max_exp_avg_sq"):
        np.testing.assert_array_equal(arrays[f"1.bias {key}"], optimizer.state[of[1].bias][key].numpy())
    assert said(capsys, "diff", "a.optimizer.pt", "a.optimizer.pt") == (0, "", "")
    plain = stepped(module(), torch.optim.AdamW, lr=0.25, amsgrad=True, names=True)
    torch.save(plain.state_dict(), "b.optimizer.pt")
    assert list(differences(contents("a.optimizer.pt"), contents("b.optimizer.pt"))) == [
        "group 0.lr: 1 of 1 numbers differ, at most 0.25 apart"
    ]
    torch.save(of.state_dict(), "m.pt")
    assert list(differences(contents("a.optimizer.pt"), contents("m.pt"))) == [
        "a.optimizer.pt is an optimizer of torch, m.pt a model"
    ]


def test_an_optimizer_that_solvergen_doesnt_know(tmp_path: Path) -> None:
    of = torch.nn.Linear(4, 3)

    def loss() -> Any:
        optimizer.zero_grad()
        value = of(torch.eye(4)).square().sum()
        value.backward()
        return value

    optimizer = torch.optim.LBFGS(of.parameters(), max_iter=3, lr=0.1)
    optimizer.step(loss)
    torch.save(optimizer.state_dict(), tmp_path / "l.pt")
    found = contents(str(tmp_path / "l.pt"))
    assert found.facts["group 0"] == ["0", "1"]
    assert found.facts["0.n_iter"] > 1
    assert found.arrays["0 old_dirs.0"].shape == (15,)


def test_what_files_may_hold(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    group = {"params": [0], "lr": 1.0}
    laughs: list[Any] = [0, torch.ones(1)]
    for _ in range(40):
        laughs = [laughs, laughs]
    endless: list[Any] = []
    endless.append(endless)
    for value, said in (
        ({"a": torch.zeros(3), "b": {"c": torch.zeros(3)}}, "'b' is a dict, not a tensor: save 'b' alone"),
        ({"a": torch.eye(3, dtype=torch.int64).to_sparse()}, "a sparse_coo tensor"),
        ({"a": torch.zeros(1, dtype=torch.int64).expand(10**13)}, "no numbers for it"),
        ({"state": {0: {"m": torch.zeros(1).expand(10**13)}}, "param_groups": [group]}, "no numbers for it"),
        ({"state": {0: {"m": torch.zeros(2, dtype=torch.complex64)}}, "param_groups": [group]}, "complex64"),
        ({"state": {0: {"m": laughs}}, "param_groups": [group]}, "more than 1048576 values"),
        ({"state": {0: {"m": endless}}, "param_groups": [group]}, "nested too deeply"),
        ({"state": {0: 1}, "param_groups": [group]}, "not as torch's optimizers write"),
    ):
        torch.save(value, path)
        with pytest.raises(SolverFileError, match=said) as raised:
            contents(str(path))
        assert str(raised.value).startswith(str(path))
    same = torch.ones(5)
    torch.save({"state": {0: {"m": [same] * 9, "n": -same}}, "param_groups": [group]}, path)
    arrays = contents(str(path)).arrays
    assert len({id(array) for array in arrays.values()}) == 2
    assert arrays["0 n"].tolist() == [-1.0] * 5


def test_modules_may_be_called_as_facts_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = torch.nn.Module()
    for name in ("layers", "name", "type", "extra"):
        setattr(of, name, torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)]))
    before = of.state_dict()
    torch.save(before, "a.pt")
    for place in ("layers.0.weight", "name.0.bias", "type.1.running_mean", "extra.1.num_batches_tracked"):
        after = {name: value.clone() for name, value in before.items()}
        after[place].view(-1)[-1] += 1
        torch.save(after, "b.pt")
        code, out, _ = said(capsys, "diff", "a.pt", "b.pt")
        assert code == 1
        assert len(out.splitlines()) == 1
        assert out.startswith(place.rpartition(".")[0])
    del after["layers.1.num_batches_tracked"]
    torch.save(after, "b.pt")
    assert "layers.1.num_batches_tracked is only in a.pt" in said(capsys, "diff", "a.pt", "b.pt")[1]


def test_a_nan_in_a_list_is_itself(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, second in (("a", np.nan), ("b", np.nan), ("c", 0.5)):
        group = {"params": [0], "betas": (0.9, float(second)), "lr": float(second)}
        torch.save({"state": {0: {"m": torch.ones(1)}}, "param_groups": [group]}, f"{name}.pt")
    assert said(capsys, "diff", "a.pt", "b.pt") == (0, "", "")
    assert said(capsys, "diff", "a.pt", "c.pt") == (
        1,
        "group 0.betas: [0.9, nan] and [0.9, 0.5]\ngroup 0.lr: nan and 0.5\n",
        "",
    )


def test_names_are_read_as_convert_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    state = {0: {"momentum_buffer": torch.ones(1)}, 1: {"momentum_buffer": torch.zeros(1)}, 7: {"m": None}}
    for first, second, problem in (
        (["w"], ["w"], "two parameters of one name"),
        (["v", "w"], [], "2 names for 1 parameters"),
        (["v"], "w", "param_names must be a list of names"),
        ([1], ["w"], "param_names must be a list of names"),
    ):
        groups = [{"params": [0], "param_names": first}, {"params": [1], "param_names": second}]
        found = {"state": state, "param_groups": groups}
        torch.save(found, path)
        for read in (
            lambda: contents(str(path)),
            lambda found=found: state_from(found, None, "sgd", None, str(path)),
        ):
            with pytest.raises(SolverFileError, match=problem) as raised:
                read()
            assert str(raised.value).startswith(str(path))
    groups = [{"params": [0], "param_names": ["w"]}, {"params": [1]}]
    torch.save({"state": state, "param_groups": groups}, path)
    numbered = contents(str(path))
    assert numbered.arrays.keys() == {"0 momentum_buffer", "1 momentum_buffer"}
    assert numbered.facts == {"group 0": ["0"], "group 1": ["1"], "7.m": None}


def test_views_of_one_storage_are_what_each_is(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w = torch.arange(4.0).reshape(2, 2)
    before = {"fc.weight": w, "gc.weight": w.t(), "hc.weight": w.view(2, 2), "ic.weight": torch._neg_view(w)}
    torch.save(before, "a.pt")
    for source, target in (("a.pt", "b.model.safetensors"), ("b.model.safetensors", "c.pt")):
        code, _, err = said(capsys, "convert", source, target)
        assert code == 0, err
    after = torch.load("c.pt", weights_only=True)
    for name, tensor in before.items():
        assert after[name].tolist() == tensor.tolist()
    assert said(capsys, "diff", "a.pt", "c.pt") == (0, "", "")


@pytest.mark.parametrize("dtype", ["bits8", "bits16", "bits1x8", "bits2x4", "bits4x2", "float8_e4m3fn"])
def test_dtypes_that_arent_numbers(here: Path, capsys: pytest.CaptureFixture[str], dtype: str) -> None:
    odd = torch.zeros(8, dtype=torch.uint8).view(getattr(torch, dtype))
    group = {"params": [0], "lr": 1.0, "momentum": 0.9, "weight_decay": 0.0, "nesterov": False}
    torch.save({"fc.weight": torch.ones(2), "fc.odd": odd}, "x.pt")
    torch.save({"fc.weight": torch.ones(len(odd))}, "x.model.pt")
    torch.save({"state": {0: {"momentum_buffer": odd}}, "param_groups": [group]}, "x.optimizer.pt")
    for name in ("x.pt", "x.optimizer.pt"):
        for words in (("inspect", name), ("diff", name, name), ("convert", name, "y.safetensors")):
            code, _, err = said(capsys, *words)
            assert code == 1, err
            assert f"is torch.{dtype}" in err
    torch.save({"state": {}, "param_groups": [{**group, "lr": odd[0]}]}, "x.optimizer.pt")
    code, _, err = said(capsys, "convert", "x.optimizer.pt", "y.state.safetensors", "--from", "sgd")
    assert code == (0 if "float" in dtype else 1), err
    if code:
        assert f"lr of a group is a tensor of torch.{dtype}" in err
        assert not list(here.glob("y*"))


def test_single_numbers_are_compared_as_arrays(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = torch.tensor(1.0)
    for name, step in (
        ("a", one),
        ("near", one + 2**-9),
        ("wide", one.double()),
        ("plain", 1),
        ("text", "1"),
        ("huge", 10**400),
        ("zero", torch.tensor(0.0)),
        ("minus", torch.tensor(-0.0)),
    ):
        found = {"state": {0: {"m": torch.ones(1), "step": step}}, "param_groups": [{"params": [0]}]}
        torch.save(found, f"{name}.pt")
    for b, line in (
        ("near", "0.step: 1 of 1 numbers differ, at most 0.00195312 apart"),
        ("wide", "0.step: float32 and float64"),
        ("plain", ""),
        ("text", "0.step: 1.0 and '1'"),
        ("huge", "0.step: 1.0 and 1000"),
    ):
        for words in (("a.pt", f"{b}.pt"), (f"{b}.pt", "a.pt")):
            code, out, _ = said(capsys, "diff", *words)
            assert code == bool(line)
            assert len(out.splitlines()) == bool(line)
        if line:
            assert said(capsys, "diff", "a.pt", f"{b}.pt")[1].startswith(line)
    assert said(capsys, "diff", "a.pt", "near.pt", "--atol", "0.01")[0] == 0
    assert said(capsys, "diff", "zero.pt", "minus.pt")[0] == 1


def test_parameters_are_compared_by_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = torch.ones(2), torch.zeros(2)
    torch.save({"fc.alpha": a, "fc.beta": b, "layers": a, "name": torch.tensor(3)}, "a.pt")
    torch.save({"name": torch.tensor(3), "layers": a, "fc.beta": b, "fc.alpha": a}, "b.pt")
    torch.save({"fc.alpha": a, "fc.gamma": b, "layers": b, "name": torch.tensor(3)}, "c.pt")
    assert said(capsys, "diff", "a.pt", "b.pt") == (0, "", "")
    code, out, _ = said(capsys, "diff", "a.pt", "c.pt")
    assert (code, sorted(out.splitlines())) == (
        1,
        [
            "fc.beta is only in a.pt",
            "fc.gamma is only in c.pt",
            "layers: 2 of 2 numbers differ, at most 1 apart",
        ],
    )
    del b
    torch.save({"fc.alpha": a}, "d.pt")
    assert "name is only in a.pt" in said(capsys, "diff", "a.pt", "d.pt")[1]


def test_files_of_the_solver_are_compared_by_name_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of = module()
    torch.save(of.state_dict(), "m.pt")
    torch.save(dict(reversed(of.state_dict().items())), "r.pt")
    for name in ("m.model.safetensors", "m.caffemodel"):  # which hold no num_batches_tracked
        assert said(capsys, "convert", "r.pt", name)[0] == 0
    assert said(capsys, "diff", "m.pt", "m.model.safetensors") == (0, "", "")
    assert said(capsys, "diff", "m.model.safetensors", "r.pt") == (0, "", "")
    # A net's layers need not be called as the names begin.
    layers = tuple(
        dataclasses.replace(one, name=f"{one.name}!") for one in read_model("m.model.safetensors").layers
    )
    write_model("n.model.safetensors", ModelData("", layers))
    assert said(capsys, "diff", "m.pt", "n.model.safetensors") == (0, "", "")
    torch.save({**of.state_dict(), "1.bias": torch.ones(3)}, "n.pt")
    code, out, _ = said(capsys, "diff", "n.pt", "n.model.safetensors")
    assert (code, out) == (1, "1.bias: 3 of 3 numbers differ, at most 1 apart\n")


def test_small_files_take_little(here: Path) -> None:
    base = torch.arange(4000.0)
    views = {f"v{i}": base[i : i + 1].expand(262144) for i in range(4000)}
    group = {"params": [0], "lr": 1.0}
    names: Any = [torch.ones(1)]
    for _ in range(17):
        names = [names, names]
    for _ in range(400):
        names = [names, 0]
    for value, problem in (
        (views, "the tensors up to it would take"),
        ({name: view.long() if name == "v0" else view for name, view in views.items()}, "the tensors up to"),
        ({"state": {0: {"m": list(views.values())}}, "param_groups": [group]}, "the tensors up to it"),
        ({"state": {0: {"m": names}}, "param_groups": [group]}, "names and texts are more than"),
    ):
        torch.save(value, "x.pt")
        with pytest.raises(SolverFileError, match=problem):
            contents("x.pt")


def test_long_values_are_shown_by_their_beginnings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, last in (("a", b"y"), ("b", b"z")):
        long = b"x" * 100_000 + last
        held = {"m": [long] * 2000, "t": long.decode(), "s": {1, 2}}
        torch.save({"state": {0: held}, "param_groups": [{"params": [0]}]}, f"{name}.pt")
    code, out, err = said(capsys, "inspect", "a.pt", "--json")
    assert code == 0, err
    assert len(out) < 500_000
    found = json.loads(out)
    assert "(100001 bytes, SHA-256" in found["0.m.0"]
    assert "(100001 characters, SHA-256" in found["0.t"]
    assert found["0.s"] == [1, 2]
    assert len(said(capsys, "diff", "a.pt", "b.pt")[1].splitlines()) == 2001


def test_files_that_arent_of_torch(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("n.npz", a=np.ones(3))
    np.save("n.npy", np.ones(3))
    with zipfile.ZipFile("s.ts", "w") as archive:
        for member in ("data.pkl", "code/__torch__.py", "constants.pkl", "version"):
            archive.writestr(f"s/{member}", b"3")
    write_pair("net", 7, small_model(), small_state(), "SAFETENSORS")
    write_pair("net", 7, small_model(), small_state(), "BINARYPROTO")
    for content, words in (
        (b"version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS: fetch the file itself"),
        (b"<!DOCTYPE html><html></html>", "a web page: the download went wrong"),
        (bytes(4096), "zeros: the download, or the disk, went wrong"),
        (b"", "empty"),
        (Path("n.npy").read_bytes(), "a NumPy .npy file"),
        (Path("n.npz").read_bytes(), "a zip archive of something else"),
        (Path("s.ts").read_bytes(), "a TorchScript archive"),
        (next(here.glob("*.model.safetensors")).read_bytes(), "rename it to end in .safetensors"),
        (next(here.glob("*.caffemodel")).read_bytes(), "not what torch.save writes"),
    ):
        Path("x.pt").write_bytes(content)
        for command in (("inspect", "x.pt"), ("convert", "x.pt", "y.model.safetensors")):
            code, _, err = said(capsys, *command)
            assert code == 1, err
            assert words in err
            assert "weights_only" not in err


def test_whole_numbers_may_be_called_as_places_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    held = {"fc.weight": torch.ones(2), "fc/0": torch.tensor([3]), "fc/1": torch.tensor([4])}
    torch.save(held, "a.pt")
    for name, changed in (("b.pt", "fc.weight"), ("c.pt", "fc/0"), ("d.pt", "fc/1")):
        torch.save({**held, changed: held[changed] + 1}, name)
        assert said(capsys, "diff", "a.pt", name)[1].startswith(f"{changed}: ")
        assert len(said(capsys, "diff", "a.pt", name)[1].splitlines()) == 1
    found = json.loads(said(capsys, "inspect", "a.pt", "--json")[1])
    assert [one["name"] for one in found["arrays"]] == ["fc.weight", "fc/0", "fc/1"]
