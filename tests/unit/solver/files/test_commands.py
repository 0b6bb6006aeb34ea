"""solvergen snapshot inspect, diff and convert."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvergen.cli.app import run
from solvergen.constraints import MaxNorm
from solvergen.errors import SolverFileError
from solvergen.optimizers import SGD, AdamMini
from solvergen.solver.files import (
    LayerData,
    ModelData,
    SolverStateData,
    read_model,
    read_pair,
    read_state,
    write_model,
    write_pair,
    write_state,
)
from solvergen.solver.files.contents import contents, differences
from solvergen.solver.files.file_names import FORMATS, pair
from tests.unit.solver.files import caffe_bytes as made
from tests.unit.solver.files.caffe_bytes import (
    array,
    same_bits,
    same_model,
    same_state,
    small_model,
    small_state,
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["snapshot", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("form", FORMATS)
def test_inspect(here: Path, form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write_pair("net", 7, small_model(diffs=True), small_state(), form)
    names = pair("net", 7, form)
    code, out, _ = said(capsys, "inspect", names.state, "--json")
    found = json.loads(out)
    assert (code, found["kind"], found["format"], found["iter"], found["current_step"]) == (
        0,
        "state",
        form,
        7,
        2,
    )
    assert found["learned_net"] == names.model
    assert [entry["shape"] for entry in found["arrays"]] == [[3, 4], [4], [2]]
    assert found["arrays"][1]["max"] == float(small_state().history[1].max())
    code, out, _ = said(capsys, "inspect", names.model)
    assert code == 0
    assert "kind: model" in out
    assert "one/0\t3x4\tfloat32" in out
    assert "two/1 diff" in out
    assert "two/0\t" in out


def test_inspect_numbers_that_are_none(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = np.array([1.0, np.nan, np.inf, -3.0])
    state = SolverStateData(
        3, None, (values, np.zeros((0, 2)), np.array(2.0)), extra={"best": np.inf, "b": b"\1"}
    )
    write_state("s.safetensors", state)
    found = json.loads(said(capsys, "inspect", "s.safetensors", "--json")[1])
    first, empty, one = found["arrays"]
    assert (first["min"], first["max"], first["nonfinite"]) == (-3.0, 1.0, 2)
    assert (empty["min"], empty["rms"], one["shape"]) == (None, None, [])
    assert (found["extra.best"], found["extra.b"]) == ("inf", "01")
    assert "one number" in said(capsys, "inspect", "s.safetensors")[1]


def test_inspect_an_optimizers_snapshot(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    optimizer = SGD({"w": array(3)}, lr=0.5, momentum=0.9, backend="numpy")
    optimizer.step({"w": array(3, seed=1)})
    for name in ("o.h5", "o.safetensors"):
        optimizer.save(name)
        found = json.loads(said(capsys, "inspect", name, "--json")[1])
        assert (found["kind"], found["spec"], found["w.t"], found["group 0.lr"]) == (
            "optimizer",
            "sgd",
            1,
            0.5,
        )
        assert [entry["name"] for entry in found["arrays"]] == ["w", "w momentum_buffer"]
    assert said(capsys, "diff", "o.h5", "o.safetensors") == (0, "", "")
    optimizer.step({"w": array(3, seed=1)})
    optimizer.save("p.h5")
    code, out, _ = said(capsys, "diff", "o.h5", "p.h5")
    assert code == 1
    assert "w.t: 1 and 2" in out
    assert "w: 3 of 3 numbers differ" in out


def test_frozen_tensors_and_constraints_are_looked_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, most, frozen in (("a", 2.0, "v"), ("b", 2.0, "v"), ("c", 3.0, "w")):
        optimizer = SGD({"w": array(3, 2), "v": array(3)}, backend="numpy")
        optimizer.constraint = {"w": MaxNorm(most, axis=1)}
        optimizer.freeze(frozen)
        optimizer.save(f"{name}.safetensors")
    found = json.loads(said(capsys, "inspect", "a.safetensors", "--json")[1])
    assert (found["frozen"], found["w.constraint"]) == (["v"], "MaxNorm")
    assert (found["w.constraint.max_value"], found["w.constraint.axis"]) == (2.0, 1)
    assert "v.constraint" not in found
    assert "w.blocks" not in found
    assert said(capsys, "diff", "a.safetensors", "b.safetensors") == (0, "", "")
    code, out, _ = said(capsys, "diff", "a.safetensors", "c.safetensors")
    assert code == 1
    assert out.splitlines() == ["frozen: ['v'] and ['w']", "w.constraint.max_value: 2.0 and 3.0"]


def test_blocks_are_looked_at(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, count in (("a", 2), ("b", 4)):
        AdamMini({"w": array(4, 3), "v": array(3)}, backend="numpy", blocks={"w": count}).save(f"{name}.h5")
    found = json.loads(said(capsys, "inspect", "a.h5", "--json")[1])
    assert (found["w.blocks"], found["v.blocks"]) == (2, 1)
    assert "w.blocks: 2 and 4" in said(capsys, "diff", "a.h5", "b.h5")[1].splitlines()


@pytest.mark.parametrize("form", FORMATS)
def test_layers_may_be_called_as_facts_are(here: Path, form: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("type", "name", "type.a", "name.a", "layers.0", "extra.a"):
        model = ModelData("net", (LayerData(name, "InnerProduct", (array(3),)),))
        write_model(f"a{pair('', 0, form).model}", model)
        other = LayerData(name, "InnerProduct", (array(3, seed=1),))
        write_model(f"b{pair('', 0, form).model}", ModelData("net", (other,)))
        code, out, _ = said(capsys, "diff", f"a{pair('', 0, form).model}", f"b{pair('', 0, form).model}")
        assert code == 1
        assert out.startswith(f"{name}/0: 3 of 3 numbers differ")


def test_layers_of_one_name_are_all_there(here: Path) -> None:
    names = ("one", "one", "one (2)", "one", "one (2)")
    layers = tuple(LayerData(name, "X", (array(2, seed=i),)) for i, name in enumerate(names))
    write_model("m.caffemodel", ModelData("n", layers))
    found = contents("m.caffemodel")
    assert list(found.arrays) == ["one/0", "one (2)/0", "one (2) (2)/0", "one (3)/0", "one (2) (3)/0"]
    assert all(
        same_bits(a, b) for a, b in zip(found.arrays.values(), (x.blobs[0] for x in layers), strict=True)
    )
    assert found.facts["layers"] == sum(name.endswith(".type") for name in found.facts) == 5


def test_extra_of_a_state_is_compared_to_the_last_item(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, last in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        extra = {
            "short": [float("nan")],
            "long": [float("nan")] * 20,
            "arrays": [np.ones(2)] * 19 + [np.full(2, last)],
            "dicts": [{"lr": float("inf"), "b": b"\1"}] * 20,
        }
        write_state(f"{name}.safetensors", dataclasses.replace(small_state(), extra=extra))
    assert said(capsys, "diff", "a.safetensors", "b.safetensors") == (0, "", "")
    code, out, _ = said(capsys, "diff", "a.safetensors", "c.safetensors")
    assert (code, out) == (1, "extra.arrays.19: 2 of 2 numbers differ, at most 1 apart\n")
    found = json.loads(said(capsys, "inspect", "a.safetensors", "--json")[1])
    assert (found["extra.dicts.19.lr"], found["extra.long"]) == ("inf", ["nan"] * 20)


@pytest.mark.parametrize("name", ["none.caffemodel", "text.solverstate", "cut.solverstate.h5"])
def test_what_can_not_be_looked_into(here: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "text.solverstate").write_text("net: 'x'")
    write_state("whole.h5", small_state())
    (here / "cut.solverstate.h5").write_bytes((here / "whole.h5").read_bytes()[:1000])
    for command in (["inspect", name], ["diff", "whole.h5", name], ["convert", name, "new.safetensors"]):
        code, out, err = said(capsys, *command)
        assert (code, out) == (1, "")
        assert err.startswith(f"solvergen: {name}: ")
        assert "bug" not in err
    assert not os.path.exists("new.safetensors")


def test_diff_over_all_formats(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form in FORMATS:
        write_pair("net", 7, small_model(), dataclasses.replace(small_state(), extra={"a": 1}), form)
    for a in FORMATS:
        for b in FORMATS:
            assert said(capsys, "diff", pair("net", 7, a).state, pair("net", 7, b).state) == (0, "", "")
            code, out, _ = said(capsys, "diff", pair("net", 7, a).model, pair("net", 7, b).model)
            assert (code, out) == (0, "")


def test_diff_says_what_differs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = small_state(), small_state(8)
    history = (first.history[0] + np.float32(1e-4), first.history[1].astype(np.float64), first.history[2][:1])
    write_state("a.solverstate", first)
    write_state("b.solverstate", dataclasses.replace(second, history=history, learned_net=None))
    code, out, _ = said(capsys, "diff", "a.solverstate", "b.solverstate")
    assert code == 1
    assert out.splitlines()[0] == "iter: 7 and 8"
    assert "learned_net: 'somewhere' and None" in out
    assert "history/0: 12 of 12 numbers differ, at most 0.0001" in out
    assert "history/1: float32 and float64" in out
    assert "history/2: the shapes (2,) and (1,)" in out
    code, out, _ = said(capsys, "diff", "a.solverstate", "b.solverstate", "--atol", "0.001")
    assert code == 1
    assert "history/0" not in out
    write_model("m.caffemodel", small_model())
    assert "is a state, m.caffemodel a model" in said(capsys, "diff", "a.solverstate", "m.caffemodel")[1]
    document = json.loads(said(capsys, "diff", "a.solverstate", "m.caffemodel", "--json")[1])
    assert len(document["differences"]) == 1


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (0.0, -0.0, False),
        (np.nan, np.nan, True),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (np.nan, 1, False),
    ],
)
def test_bits_count(here: Path, a: float, b: float, same: bool) -> None:
    for name, value in (("a.solverstate", a), ("b.solverstate", b)):
        write_state(name, SolverStateData(1, "x", (np.array([value], np.float32),)))
    assert (list(differences(contents("a.solverstate"), contents("b.solverstate"))) == []) == same


@pytest.mark.parametrize("before", ["BINARYPROTO", "SAFETENSORS"])
@pytest.mark.parametrize("after", FORMATS)
def test_convert_a_pair(here: Path, before: Any, after: Any, capsys: pytest.CaptureFixture[str]) -> None:
    write_pair("net", 7, small_model(), small_state(), before)
    source, target = pair("net", 7, before).state, pair("new", 7, after).state
    code, out, err = said(capsys, "convert", source, target)
    assert (code, err) == (0, "")
    assert f"{target}: the state of {source}" in out
    state, model = read_pair(target)
    assert same_state(state, small_state())
    assert state.learned_net == pair("new", 7, after).model
    assert model is not None
    assert same_bits(model.layers[1].blobs[0], small_model().layers[1].blobs[0])
    code, _, err = said(capsys, "convert", source, target)
    assert code == 1
    assert "is there already" in err
    assert said(capsys, "convert", source, target, "--force")[0] == 0


def test_convert_a_model_of_2014(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    w = array(2, 3, 5, 5)
    Path("old.caffemodel").write_bytes(made.net("n", made.v1_layer("c", 4, [made.old_blob(w, packed=False)])))
    assert said(capsys, "convert", "old.caffemodel", "new.caffemodel")[0] == 0
    assert same_model(read_model("new.caffemodel"), ModelData("n", (LayerData("c", "Convolution", (w,)),)))


def same_blobs(a: ModelData, b: ModelData) -> bool:
    """All but the types, which HDF5 doesn't have."""
    return [layer.name for layer in a.layers] == [layer.name for layer in b.layers] and all(
        same_bits(p, q)
        for x, y in zip(a.layers, b.layers, strict=True)
        for p, q in zip(x.blobs, y.blobs, strict=True)
    )


def test_convert_a_model_in_hdf5_with_shared_weights(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    h5py = pytest.importorskip("h5py")
    names = write_pair("net", 7, small_model(), small_state(), "HDF5")
    assert said(capsys, "convert", names[1], "own_iter_7.solverstate")[0] == 0
    assert same_blobs(read_model("own_iter_7.caffemodel"), small_model())
    with h5py.File(names[0], "r+") as root:  # as Caffe writes it
        del root["data/two"].attrs["solvergen_owner_of_0"]
    words = ("convert", names[1], "caffes_iter_7.solverstate")
    code, _, err = said(capsys, *words)
    assert code == 1
    assert "--shared two/0=LAYER/NUMBER" in err
    assert not os.path.exists("caffes_iter_7.solverstate")
    assert said(capsys, *words, "--shared", "two/0=one/0")[0] == 0
    assert same_blobs(read_model("caffes_iter_7.caffemodel"), small_model())


def test_convert_alone_and_without_its_model(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_state("s.solverstate", small_state())
    code, _, err = said(capsys, "convert", "s.solverstate", "t.solverstate.h5")
    assert code == 1
    assert "its model somewhere is neither there" in err
    assert said(capsys, "convert", "s.solverstate", "t.solverstate.h5", "--alone")[0] == 0
    assert read_state("t.solverstate.h5").learned_net == "somewhere"
    write_pair("net", 7, small_model(), small_state())
    code, _, err = said(capsys, "convert", "net_iter_7.solverstate", "odd.h5")
    assert "the name must end in .solverstate, .solverstate.h5, .state.safetensors" in err
    code, _, err = said(capsys, "convert", "net_iter_7.solverstate", "odd.caffemodel")
    assert "what is to be written there is a state, the name says something else" in err


def test_convert_says_what_is_lost(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = dataclasses.replace(
        small_state(), extra={"solver_type": "SGD", "policy": {"name": "fixed", "state": {}}}
    )
    write_pair("net", 7, small_model(), state, "SAFETENSORS")
    out = said(capsys, "convert", "net_iter_7.state.safetensors", "new.solverstate")[1]
    assert "left out, since Caffe's files don't hold it: policy, solver_type" in out


def test_convert_conventions(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_state("s.solverstate", small_state())
    words = ("convert", "s.solverstate", "t.state.safetensors", "--alone", "--to", "sgd", "--force")
    code, _, err = said(capsys, *words)
    assert code == 1
    assert "doesn't say of which optimizer it is: give --from" in err
    code, _, err = said(capsys, *words, "--from", "caffe_sgd")
    assert "give lr" in err
    code, out, _ = said(capsys, *words, "--from", "caffe_sgd", "--lr", "0.5")
    assert code == 0
    assert "sgd's momentum_buffer: history / lr" in out
    found = read_state("t.state.safetensors")
    assert same_bits(found.history[0], small_state().history[0] * 2)
    assert (found.extra["solver_type"], found.extra["states"]) == ("SGD", ["momentum_buffer"])
    assert found.extra["digest"] == SGD.definition.digest
    code, out, _ = said(  # and back: the file says what it is
        capsys,
        "convert",
        "t.state.safetensors",
        "u.solverstate",
        "--alone",
        "--to",
        "caffe_nesterov",
        "--lr",
        "0.5,0.5,0.5",
    )
    assert code == 0
    assert same_state(read_state("u.solverstate"), small_state())
    for wrong in (("--lr", "0.5"), ("--from", "sgd"), ("--start-missing",)):
        assert said(capsys, "convert", "s.solverstate", "v.solverstate", *wrong)[0] == 2
    assert said(capsys, *words, "--from", "caffe_sgd", "--lr", "fast")[0] == 2
    write_model("m.caffemodel", small_model())
    code, _, err = said(capsys, "convert", "m.caffemodel", "n.caffemodel", "--to", "sgd")
    assert "weights have no optimizer's conventions" in err


def test_warnings_are_sentences(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model("m.caffemodel", ModelData("n", (LayerData("a/b", "X", (array(2),)),)))
    code, _, err = said(capsys, "convert", "m.caffemodel", "m.caffemodel.h5")
    assert code == 0
    assert err.startswith(
        "solvergen: warning: Caffe finds no layers in HDF5 whose names have a slash ('a/b')"
    )


def test_show_is_for_optimizers(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_state("s.safetensors", small_state())
    code, _, err = said(capsys, "show", "s.safetensors")
    assert code == 1
    assert (
        "s.safetensors: a file of the Solver's, not an optimizer's snapshot: `solvergen snapshot inspect`"
        in err
    )
    for name, whose in (("m.pt", "torch's"), ("m.PTH", "torch's"), ("m.caffemodel", "Caffe's")):
        assert said(capsys, "show", name) == (1, "", f"solvergen: {name}: No such file or directory\n")
        Path(name).write_bytes(b"anything")
        code, _, err = said(capsys, "show", name)
        assert code == 1
        assert f"{name}: by its name one of {whose} files" in err
        assert "`solvergen snapshot inspect` looks into it" in err
    write_model("m.caffemodel.h5", small_model())
    assert "by its name this is a file of Caffe's: `sol" in said(capsys, "show", "m.caffemodel.h5")[2]


def test_what_convert_could_make_of_a_file_is_said(here: Path) -> None:
    SGD({"w": array(3)}, backend="numpy").save("o.safetensors")
    SGD({"w": array(3)}, backend="numpy").save("o.h5")
    np.savez("t.npz", w=array(3))
    os.rename("t.npz", "t.pt")
    for name, read in (("o.safetensors", read_state), ("o.h5", read_state), ("t.pt", read_model)):
        with pytest.raises(SolverFileError, match="`solvergen snapshot convert` make"):
            read(name)


def test_convert_replaces_files_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair_of = write_pair("net", 7, small_model(), small_state(), "BINARYPROTO")
    endings = [".caffemodel", ".caffemodel.h5", ".safetensors", ".solverstate"]
    endings += [".pt"] if importlib.util.find_spec("torch") else []
    for ending in endings:
        os.mkfifo(f"pipe{ending}")
        os.symlink(f"pipe{ending}", f"link{ending}")
    before = set(os.listdir())
    for ending in endings:
        source = pair_of[1] if ending == ".solverstate" else pair_of[0]
        for name in (f"pipe{ending}", f"link{ending}"):
            words = ("convert", source, name, "--force", "--alone", "--shared", "two/0=one/0")
            code, _, err = said(capsys, *words)
            assert (code, "regular file" in err, "bug" in err) == (1, True, False), err
    assert set(os.listdir()) == before
    for name in ("x", "x.onnx", "x.H5", "x.txt"):
        code, _, err = said(capsys, "convert", pair_of[0], name, "--shared", "two/0=one/0")
        assert (code, "its ending says no format; there are .caffemodel" in err) == (1, True), err


def test_weights_of_other_programs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save = pytest.importorskip("safetensors.numpy").save_file
    held = {"fc.bias": array(3), "fc.weight": array(3, 2), "fc.steps": np.array(7), "ß/x": array(2)}
    save(held, "a.safetensors")
    save({**held, "fc.steps": np.array(8), "ß/x": held["ß/x"] + 1}, "b.safetensors")
    assert "`solvergen snapshot inspect` looks into it" in said(capsys, "show", "a.safetensors")[2]
    found = json.loads(said(capsys, "inspect", "a.safetensors", "--json")[1])
    assert (found["format"], found["kind"], found["layers"]) == ("PLAIN_SAFETENSORS", "model", 2)
    assert {one["name"]: one["dtype"] for one in found["arrays"]} == {
        **dict.fromkeys(("fc.weight", "fc.bias", "ß/x"), "float32"),
        "fc.steps": "int64",
    }
    assert said(capsys, "diff", "a.safetensors", "a.safetensors") == (0, "", "")
    code, out, _ = said(capsys, "diff", "a.safetensors", "b.safetensors")
    assert (code, sorted(out.splitlines())) == (
        1,
        ["fc.steps: 1 of 1 numbers differ", "ß/x: 2 of 2 numbers differ, at most 1 apart"],
    )
    for name in ("m.model.safetensors", "m.caffemodel"):  # which hold no whole numbers
        assert said(capsys, "convert", "a.safetensors", name)[0] == 0
        assert said(capsys, "diff", "a.safetensors", name) == (0, "", "")
        assert said(capsys, "diff", name, "b.safetensors")[0] == 1


def test_what_one_format_lacks_hides_no_difference(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whole numbers in the place of real ones are one, though the other format has no such arrays."""
    save = pytest.importorskip("safetensors.numpy").save_file
    layer = LayerData("net", "X", (array(3), array(2)), names=("w", "v"))
    save({"w": array(3), "v": np.array([1, 2])}, "whole.safetensors")
    write_model("m.model.safetensors", ModelData("n", (layer,)))
    write_model("m.caffemodel", ModelData("n", (layer,)))
    for files in (("m.model.safetensors", "whole.safetensors"), ("whole.safetensors", "m.model.safetensors")):
        code, out, _ = said(capsys, "diff", *files)
        assert (code, out.startswith("v: ") and "float32" in out and "int64" in out) == (1, True), out
    assert said(capsys, "diff", "m.caffemodel", "whole.safetensors")[1] == "net/1 is only in m.caffemodel\n"


def test_arrays_are_compared_by_their_names(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b, c = array(2), array(2, seed=1), array(2, seed=2)
    layer = LayerData("fc", "X", (a, b), (c, a), names=("fc.alpha", "fc.beta"))
    turned = LayerData("fc", "X", (b, a), (a, c), names=("fc.beta", "fc.alpha"))
    for name, held in (("a", layer), ("b", turned)):
        write_model(f"{name}.model.safetensors", ModelData("n", (held,)))
        write_model(f"{name}.caffemodel", ModelData("n", (held,)))
    assert said(capsys, "diff", "a.model.safetensors", "b.model.safetensors") == (0, "", "")
    for files in (("a.model.safetensors", "b.caffemodel"), ("a.caffemodel", "b.caffemodel")):  # without names
        assert said(capsys, "diff", *files)[1].startswith("fc/0: 2 of 2 numbers differ")
    other = dataclasses.replace(layer, names=("fc.alpha", "fc.gamma"), diffs=None)
    write_model("c.model.safetensors", ModelData("n", (other,)))
    lines = said(capsys, "diff", "a.model.safetensors", "c.model.safetensors")[1].splitlines()
    assert lines == [
        *(f"{name} is only in a.model.safetensors" for name in ("fc.beta", "fc.alpha diff", "fc.beta diff")),
        "fc.gamma is only in c.model.safetensors",
    ]


def test_names_that_two_arrays_have_say_nothing(here: Path) -> None:
    first, second = array(2), array(2, seed=1)
    layers = (
        LayerData("a", "X", (first,), names=("w",)),
        LayerData("b", "X", (second,), names=("w",)),
        LayerData("c", "X", (first,), names=("d/0",)),
        LayerData("d", "X", (second,)),
    )
    write_model("m.model.safetensors", ModelData("n", layers))
    found = contents("m.model.safetensors")
    assert list(found.by_name()) == ["a/0", "b/0", "c/0", "d/0"]


def test_histories_are_compared_by_parameters(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    m, n, v, w = (array(2, seed=i) for i in range(4))
    for name, parameters, history in (("a", ["x", "y"], (m, n, v, w)), ("b", ["y", "x"], (n, m, w, v))):
        extra = {"states": ["m", "v"], "parameters": parameters}
        write_state(f"{name}.safetensors", SolverStateData(1, None, history, extra=extra))
    code, out, _ = said(capsys, "diff", "a.safetensors", "b.safetensors")
    assert (code, out) == (1, "extra.parameters.0: 'x' and 'y'\nextra.parameters.1: 'y' and 'x'\n")
    assert list(contents("a.safetensors").by_name()) == ["x m", "y m", "x v", "y v"]
    many = {"states": ["m"] * 1, "parameters": [f"{i}" for i in range(100_000)]}
    write_state("c.safetensors", SolverStateData(1, None, (m, n), extra=many))
    assert list(contents("c.safetensors").by_name()) == ["history/0", "history/1"]


def test_convert_to_an_optimizers_snapshot_and_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from solvergen.runtime import snapshots

    names = write_pair("net", 7, small_model(), small_state(), "BINARYPROTO")
    Path("solver.prototxt").write_text(
        'net: "n" base_lr: 0.5 lr_policy: "fixed" momentum: 0.25 type: "SGD" max_iter: 9 solver_mode: CPU'
    )
    for wrong, words in (
        (("--as", "zip"), "solver, optimizer or torch"),
        (("--solver", "solver.prototxt"), "--solver belongs to --as optimizer"),
        (("--iter", "3"), "--iter is for sources of torch's"),
    ):
        code, _, err = said(capsys, "convert", names[1], "x.solverstate", *wrong)
        assert (code, words in " ".join(err.replace("│", " ").split())) == (2, True), err
    words = ("convert", names[1], "o.safetensors", "--as", "optimizer")
    code, _, err = said(capsys, *words, "--solver", "solver.prototxt")
    assert (code, "where two layers share one, --shared" in err) == (1, True), err
    words += ("--shared", "two/0=one/0")
    code, out, err = said(capsys, *words, "--solver", "solver.prototxt")
    assert code == 0, err
    assert "o.safetensors: a snapshot of caffe_sgd for Optimizer.load, made from" in out
    data = snapshots.load("o.safetensors")
    assert (data.spec, {tensor.t for tensor in data.tensors}) == ("caffe_sgd", {7})
    assert (data.groups[0].hyperparameters["lr"], data.groups[0].hyperparameters["momentum"]) == (0.5, 0.25)
    assert said(capsys, "convert", "o.safetensors", "back_iter_7.solverstate")[0] == 0
    without_step = dataclasses.replace(small_state(), current_step=0)
    assert same_state(read_state("back_iter_7.solverstate"), without_step)


def test_convert_to_torch_and_back(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch", reason="torch isn't installed: pip install torch")
    names = write_pair("net", 7, small_model(), small_state(), "BINARYPROTO")
    rule = ("--from", "caffe_sgd", "--to", "sgd", "--lr", "0.5")
    code, out, err = said(capsys, "convert", names[1], "t.optimizer.pt", *rule, "--shared", "two/0=one/0")
    assert code == 0, err
    assert "t.model.pt: its model" in out
    found = torch.load("t.optimizer.pt", weights_only=True)
    np.testing.assert_array_equal(found["state"][1]["momentum_buffer"].numpy(), small_state().history[1] * 2)
    code, out, err = said(capsys, "convert", "t.optimizer.pt", "back_iter_7.solverstate", "--iter", "7")
    assert code == 0, err
    state = read_state("back_iter_7.solverstate")
    assert (state.iter, len(state.history)) == (7, 3)
