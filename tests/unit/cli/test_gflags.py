"""Command lines of scripts for Caffe: one dash or two, glog's flags, GPUs by number."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import typer

from solvergen.cli.app import run
from solvergen.cli.gflags import as_usual, devices

ROOT = Path(__file__).parents[3]
KNOWN = {
    "--solver": "a value or none",
    "--gpu": "a value or none",
    "--sigint_effect": "a value",
    "--iterations": "a value",
    "--json": "nothing",
}


@pytest.mark.parametrize(
    ("given", "taken", "ignored"),
    [
        (["-solver", "s"], ["--solver", "s"], []),
        (["-solver=s=t", "-gpu=0,1"], ["--solver=s=t", "--gpu=0,1"], []),
        (["--sigint_effect=stop"], ["--sigint_effect=stop"], []),
        (["-h", "-x", "-unknown", "-n=3"], ["-h", "-x", "--unknown", "-n=3"], []),
        (["-solver", "", "-json", "-gpu=", "-iterations", ""], ["--json", "--iterations", ""], []),
        (["-solver", "-gpu", "-gpu", "--", "-v"], ["--solver", "-gpu", "--gpu", "--"], ["--v"]),
        (["-sigint_effect=", "-solver"], ["--sigint_effect=", "--solver"], []),
        (["--nologtostderr", "--no-gpu", "-solver=s"], ["--no-gpu", "--solver=s"], ["--nologtostderr"]),
        (["--alsologtostderr", "-gpu", "0"], ["--gpu", "0"], ["--alsologtostderr"]),
        (["-logtostderr=1", "--log_dir", "/tmp", "-v", "1"], [], ["--logtostderr", "--log_dir", "--v"]),
        (["-gpu", "0", "--", "-gpu", "-v"], ["--gpu", "0", "--", "-gpu", "-v"], []),
        (["-v"], [], ["--v"]),
    ],
)
def test_words(given, taken, ignored):
    assert as_usual(given, KNOWN) == (taken, ignored)


@pytest.mark.parametrize(
    ("text", "found"), [("", ()), ("0", (0,)), ("1,3", (1, 3)), ("all", (0,)), (" 2 , 0", (2, 0))]
)
def test_devices(text, found):
    assert devices(text) == found


@pytest.mark.parametrize("text", ["one", "0,", "-1", "0;1"])
def test_what_is_no_gpu(text):
    with pytest.raises(typer.BadParameter, match="numbers of GPUs"):
        devices(text)


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    shutil.copytree(ROOT / "examples" / "caffe", tmp_path / "caffe")
    monkeypatch.chdir(tmp_path / "caffe")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "spirals", raising=False)
    path = Path("solver.prototxt")
    path.write_text(re.sub(r"(?m)^max_iter: \d+", "max_iter: 3", path.read_text()))
    return tmp_path / "caffe"


def test_a_line_of_caffes_trains_tests_and_times(here, capsys):
    net = ["--net", "spirals:make"]
    empty = ["-snapshot", "", "--weights="]
    assert run(["train", "-solver=solver.prototxt", *net, "-gpu", "0,1", "-logtostderr", *empty]) == 0
    err = capsys.readouterr().err
    assert "--logtostderr: glog isn't here" in err
    assert "--gpu 0,1: one GPU trains, 0" in err
    model = next(here.glob("*.model.safetensors"))
    line = ["test", "-model", "a.prototxt", "-weights", str(model), "-iterations", "2", "-gpu=0"]
    assert run([*line, *net]) == 0
    assert "--gpu: the function of --net decides" in capsys.readouterr().err
    assert run(["time", "-iterations", "2", *net, "-phase", "TRAIN", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [layer["layer"] for layer in found["layers"]] == ["data", "ip1", "ip2", "ip3", "loss"]
    assert all(layer["forward_ms"] > 0 for layer in found["layers"][1:])
    assert re.search(r"caffe.cpp:411\] Average time per layer: \n", err)
    assert re.search(r"caffe.cpp:414\]        ip1\tforward: [\d.e-]+ ms\.\n", err)
    assert re.search(r"caffe.cpp:417\]        ip1\tbackward: [\d.e-]+ ms\.\n", err)
    assert len(re.findall(r"Iteration: \d forward-backward time: [\d.e-]+ ms\.", err)) == 2


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (["train", "-solver", "solver.prototxt", "-gpu", "0", "--backend", "cpu"], "not both"),
        (["time", "-gpu", "x"], "numbers of GPUs"),
        (["time", "-phase", "TEST"], "so the phase is TRAIN"),
        (["time", "-model", "m", "-solver", "solver.prototxt"], "the solver file says which net"),
        (["train", "-solver="], "Missing option '--solver'"),
        (["train", "-solver=solver.prototxt", "-phase", "TRAIN"], "No such option: --phase"),
    ],
)
def test_what_is_wrong(here, capsys, line, says):
    assert run([*line, "--net", "spirals:make"]) == 2
    assert says in " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().err).split())


def test_the_factory_gets_the_model_as_source(here, capsys):
    Path("sourced.py").write_text(
        "import spirals\n\n"
        "def make(phase, source):\n    print(phase, source.path)\n    return spirals.make(phase)\n"
    )
    assert run(["time", "--net", "sourced:make", "-model", "m.prototxt", "-iterations", "1"]) == 0
    assert capsys.readouterr().out == "TRAIN m.prototxt\n"
