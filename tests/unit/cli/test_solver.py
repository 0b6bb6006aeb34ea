"""``solvergen solver``: show and lr, run in this process."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from solvergen.cli.app import run

pytest.importorskip("google.protobuf")

GOOD = """\
net: "n"
test_iter: 10
test_interval: 500
base_lr: 0.01
lr_policy: "multistep"
gamma: 0.1
stepvalue: [4000, 6000]
max_iter: 10000
momentum: 0.9
weight_decay: 0.0005
solver_mode: CPU
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a solver in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.prototxt").write_text(GOOD)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(arguments)
    out, err = capsys.readouterr()
    return code, out, err


def test_show(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "solver", "show", "s.prototxt")
    lines = out.splitlines()
    assert code == 0
    assert "base_lr: 0.01" in lines
    assert "stepvalue: 6000" in lines
    assert "iter_size: 1   # default" in lines
    assert 'snapshot_prefix: "s"' in lines
    assert "optimizer: CaffeSGD(lr=0.01, momentum=0.9, weight_decay=0.0005, l1=False)" in lines
    assert "policy: multistep: 0.01 at 0, 0.001 at 4000, 0.0001 at 6000, 0.0001 at 9999" in lines
    assert any(line in lines for line in ("backend: cpu", "backend: numpy"))
    assert "train: net 'n', TRAIN" in lines
    assert "test 0: net 'n', TEST, 10 iterations" in lines
    assert "s.prototxt:1:1: warning: net: there is no file 'n'" in err
    assert '    net: "n"\n    ^^^\n' in err


def test_show_as_json(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, "solver", "show", "s.prototxt", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["parameters"]["base_lr"] == 0.01
    assert told["parameters"]["stepvalue"] == [4000, 6000]
    assert told["optimizer"]["name"] == "CaffeSGD"
    assert told["policy"] == "multistep"
    assert told["tests"][0]["state"]["phase"] == "TEST"
    assert [finding["line"] for finding in told["findings"]] == [1]


def test_what_caffe_refuses_is_shown_and_exits_with_1(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "s.prototxt").write_text(GOOD.replace('"multistep"', '"multifixed"'))
    code, out, err = said(capsys, "solver", "show", "s.prototxt")
    assert code == 1
    assert "momentum: 0.9" in out
    assert (
        "s.prototxt:5:1: error: unknown learning rate policy 'multifixed'; \"piecewise\" does the same" in err
    )
    code, out, _ = said(capsys, "solver", "show", "s.prototxt", "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["severity"] == "error"


@pytest.mark.parametrize("command", ["show", "lr"])
def test_what_is_no_prototxt_exits_with_1(
    here: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (here / "s.prototxt").write_text("base_lr: 1\ntype: SGD")
    code, out, err = said(capsys, "solver", command, "s.prototxt")
    assert (code, out) == (1, "")
    assert err == (
        's.prototxt:2:7: error: type is a string; write type: "SGD"\n    type: SGD\n          ^^^\n'
    )
    code, out, _ = said(capsys, "solver", command, "s.prototxt", "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["column"] == 7


def test_a_missing_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "solver", "show", "none.prototxt")
    assert (code, out) == (1, "")
    assert err == "solvergen: none.prototxt: No such file or directory\n"


def test_lr(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "solver", "lr", "s.prototxt")
    assert (code, err) == (0, "")
    assert out == "iteration\tlr\n0\t0.01\n4000\t0.001\n6000\t0.0001\n9999\t0.0001\n"
    code, out, _ = said(capsys, "solver", "lr", "s.prototxt", "--every", "5000")
    assert out == "iteration\tlr\n0\t0.01\n5000\t0.001\n"


def test_lr_as_json_of_a_smooth_policy(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "s.yaml").write_text("base_lr: 1\nlr_policy: cosine\nmax_iter: 1001\npolicy: {warmup: 10}\n")
    code, out, _ = said(capsys, "solver", "lr", "s.yaml", "--json")
    rates = dict(json.loads(out)["rates"])
    assert code == 0
    assert rates[0] == 0
    assert rates[500] == pytest.approx(0.5, abs=1e-3)
    assert 10 in rates
    assert 1000 in rates


def test_lr_says_that_plateau_depends(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "s.yaml").write_text("base_lr: 1\nlr_policy: plateau\nmax_iter: 100\n")
    code, _, err = said(capsys, "solver", "lr", "s.yaml")
    assert code == 0
    assert "by what is measured" in err


def test_a_run_of_many_iterations_takes_no_time(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "s.yaml").write_text(
        "base_lr: 1\nlr_policy: step\nstepsize: 25600000\ngamma: .1\nmax_iter: 81920000\n"
    )
    code, out, _ = said(capsys, "solver", "lr", "s.yaml")
    assert code == 0
    assert out.splitlines()[2] == "25600000\t0.1"


def test_lr_draws(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert said(capsys, "solver", "lr", "s.prototxt", "--plot", "a.svg")[0] == 0
    assert said(capsys, "solver", "lr", "s.prototxt", "--plot", "b.svg")[0] == 0
    assert ElementTree.parse(here / "a.svg").getroot().tag.endswith("svg")
    assert (here / "a.svg").read_bytes() == (here / "b.svg").read_bytes()
    code, _, err = said(capsys, "solver", "lr", "s.prototxt", "--plot", "a.bmp")
    assert code == 1
    assert err == "solvergen: a.bmp: pictures are 'svg', 'png' and 'pdf', not 'bmp'\n"


FACTORIES = """\
import numpy as np
from solvergen.solver.net.dense import DenseNet, InnerProduct
from solvergen.solver.net.protocol import Output

X = np.ones((4, 3))
COUNT = [0]

def make():
    return DenseNet(X, X[:, :2], [InnerProduct("a", 2)], batch_size=2)

def frozen():
    net = make()
    net.learnable = ()
    return net

def growing():
    net = make()
    def forward():
        COUNT[0] += 1
        return (Output("a", np.zeros(COUNT[0])),)
    net.forward = forward
    return net

def lossless():
    net = make()
    net.forward_backward = lambda: None
    return net
"""


def test_nets_that_are_odd(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "odd_nets.py").write_text(FACTORIES)
    text = GOOD.replace("test_iter: 10\ntest_interval: 500\n", "").replace("max_iter: 10000", "max_iter: 1")
    (here / "s.prototxt").write_text(text)
    train = ("train", "--solver", "s.prototxt", "--net")
    code, _, err = said(capsys, *train, "odd_nets:make")
    assert code == 0, err
    test = ("test", "--weights", "s_iter_1.caffemodel", "--iterations", "2", "--net")
    code, out, err = said(capsys, *test, "odd_nets:frozen", "--json")
    assert code == 0, err
    assert [each["name"] for each in json.loads(out)["outputs"]] == ["loss"]
    code, _, err = said(capsys, *train, "odd_nets:frozen")
    assert (code, "no parameters to learn" in err) == (0, True), err
    for arguments, words in (
        ((*test, "odd_nets:growing"), "needs the same outputs"),
        ((*train, "odd_nets:lossless"), "must return the loss"),
    ):
        code, _, err = said(capsys, *arguments)
        assert (code, words in err, "bug" in err) == (1, True, False), err


def test_nets_that_go_elsewhere(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = "import os, sys\nimport odd_nets\n"
    for name, body in (
        ("moves", "os.chdir('/'); return odd_nets.make()"),
        ("shouts", "net = odd_nets.make(); net.name = 'a\\x1b[31m'; return net"),
        ("exits", "sys.exit('no data')"),
        ("prints", "print('loaded'); return odd_nets.make()"),
    ):
        module += f"def {name}(): {body}\n"
    (here / "odd_nets.py").write_text(FACTORIES)
    (here / "far_nets.py").write_text(module)
    text = GOOD.replace("test_iter: 10\ntest_interval: 500\n", "").replace("max_iter: 10000", "max_iter: 1")
    (here / "s.prototxt").write_text(text)
    words = ("train", "--solver", "s.prototxt", "--net")
    code, _, err = said(capsys, *words, "far_nets:moves")
    assert (code, "changed the working folder to /: it is " in err) == (0, True), err
    assert (here / "s_iter_1.solverstate").exists()
    for command in (("test", "--weights", "s_iter_1.caffemodel"), ("time", "--iterations", "1")):
        code, _, err = said(capsys, *command, "--net", "far_nets:moves")
        assert (code, "changed the working folder" in err) == (0, True), err
        code, out, err = said(capsys, *command, "--net", "far_nets:prints", "--json")
        assert (code, "loaded" in err) == (0, True), err
        assert json.loads(out)
    code, _, err = said(capsys, *words, "far_nets:shouts")
    assert (code, r"Solving a\x1b[31m" in err, "\x1b" in err) == (0, True, False)
    code, _, err = said(capsys, *words, "far_nets:exits")
    assert (code, "it called sys.exit('no data')" in err) == (1, True), err
    code, _, err = said(capsys, *words, "far_nets:prints", "--weights", ",")
    assert (code, "there is no file in it" in err) == (2, True), err


def test_plot_says_a_few_warnings(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    record = {"event": "iteration", "iter": 1, "smoothed": 1.0, "lr": 0.1, "final": False}
    (here / "a.jsonl").write_text(json.dumps(record) + "\nx" * 500)
    code, out, err = said(capsys, "solver", "plot", "a.jsonl")
    assert (code, out) == (0, "a.svg\n")
    assert len(err.splitlines()) == 11
    assert "a.jsonl: 490 more warnings like these" in err


def test_a_log_that_is_a_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    code, _, err = said(capsys, "solver", "plot", ".")
    assert (code, err) == (1, "solvergen: .: Is a directory\n")
    code, _, err = said(capsys, "solver", "lr", "s.prototxt", "--plot", "none/a.svg")
    assert (code, err) == (1, "solvergen: none/a.svg: No such file or directory\n")
