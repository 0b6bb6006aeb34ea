"""``solvergen train`` on the example, run as a user runs it: it learns, it can be stopped, it goes on."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = [f"spirals_iter_2000.{kind}.safetensors" for kind in ("model", "state")]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "examples" / "caffe", tmp_path / "caffe")
    return tmp_path / "caffe"


def start(here: Path, *arguments: str, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "solvergen", *arguments],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(here: Path, *arguments: str, code: int = 0) -> tuple[str, str]:
    process = start(here, *arguments)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return out, err


def edit(here: Path, pattern: str, by: str) -> None:
    path = here / "solver.prototxt"
    text, count = re.subn(pattern, by, path.read_text(), flags=re.MULTILINE)
    assert count == 1
    path.write_text(text)


TRAIN = ("train", "--solver", "solver.prototxt", "--net", "spirals:make")


# A net that sends its process a signal in the middle of a pass, so that it always comes at the same place.
SIGNALLED = """
import os
import spirals

def make(phase):
    net = spirals.make(phase)
    if phase == "TRAIN":
        train, count = net.forward_backward, 0
        def forward_backward():
            nonlocal count
            count += 1
            if count == 701:
                for _ in range(int(os.environ["TIMES"])):
                    os.kill(os.getpid(), int(os.environ["SIGNAL"]))
            return train()
        net.forward_backward = forward_backward
    return net
"""


def signalled(here: Path, number: int, *arguments: str, times: int = 1, code: int = 0) -> str:
    """Train, with a signal in iteration 700; what the log says."""
    (here / "signalled.py").write_text(SIGNALLED)
    net = ("--net", "signalled:make")
    process = start(here, *TRAIN, *net, *arguments, SIGNAL=str(int(number)), TIMES=str(times))
    _, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return err


def test_a_run_that_is_stopped_ends_with_the_files_of_one_that_isnt(here: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    shutil.copytree(here, whole)
    _, log = run(whole, *TRAIN, "--log", "run.jsonl")
    assert "Optimization Done." in log
    assert "Initializing solver from parameters: \n" in log
    assert "solver.cpp:45] stepvalue: 1500\n" in log
    records = [json.loads(line) for line in (whole / "run.jsonl").read_text().splitlines()]
    assert records[0]["parameters"]["stepvalue"] == [1500, 1900]
    tests = [record for record in records if record["event"] == "test_outputs"]
    assert [record["iter"] for record in tests] == [0, 500, 1000, 1500, 2000]
    accuracy = {value["name"]: value["value"] for value in tests[-1]["values"]}["accuracy"]
    assert accuracy > 0.98

    text = signalled(here, signal.SIGINT, "--log", "run.jsonl", code=128 + signal.SIGINT)
    assert "Snapshotting solver state to safetensors file spirals_iter_701.state.safetensors" in text
    assert "Optimization stopped early." in text
    assert not (here / NAMES[0]).exists()
    _, log = run(here, *TRAIN, "--snapshot", "spirals_iter_701.state.safetensors", "--log", "run.jsonl")
    assert "Resuming from spirals_iter_701.state.safetensors" in log
    for name in NAMES:
        assert (here / name).read_bytes() == (whole / name).read_bytes(), name

    # Both runs' displays agree, and are those of one run in one log.
    out, err = run(here, "solver", "plot", "run.jsonl")
    assert (out, err) == ("run.svg\n", "")
    assert (here / "run.svg").read_bytes().startswith(b"<?xml")


def test_sighup_snapshots_and_goes_on_and_sigterm_stops(here: Path) -> None:
    edit(here, r"^max_iter: 2000", "max_iter: 1001")
    edit(here, r"^snapshot_format.*", "")
    edit(here, r"^solver_mode", "snapshot_after_train: false\nsolver_mode")
    text = signalled(here, signal.SIGHUP)
    assert text.count("Snapshotting to binary proto file") == 3  # at 500, at 1000, and when it was asked for
    assert "Optimization Done." in text
    for path in here.glob("spirals_iter_*"):
        path.unlink()
    text = signalled(here, signal.SIGTERM, code=128 + signal.SIGTERM)
    assert text.count("Snapshotting to binary proto file") == 1  # at 500; none at the end
    assert "Optimization stopped early." in text
    out, err = run(
        here, "test", "--net", "spirals:make", "--weights", "spirals_iter_500.caffemodel",
        "--iterations", "20", "--json",
    )  # fmt: skip
    found = json.loads(out)
    assert {each["name"] for each in found["outputs"]} == {"accuracy", "loss"}
    assert "Batch 19, accuracy = " in err
    assert re.search(r"caffe\.cpp:\d+\] loss = \S+ \(\* 1 = \S+ loss\)", err)
    edit(here, r"^max_iter: 1001", "max_iter: 1")
    _, log = run(here, *TRAIN, "--weights", "spirals_iter_500.caffemodel")
    assert "Finetuning from spirals_iter_500.caffemodel" in log


def test_a_second_sigint_ends_at_once(here: Path) -> None:
    text = signalled(here, signal.SIGINT, times=2, code=130)
    assert "Iteration 600" in text
    assert "spirals_iter_701" not in text
    assert "Traceback" not in text
    assert sorted(path.name for path in here.glob("spirals_iter*")) == [
        "spirals_iter_500.model.safetensors",
        "spirals_iter_500.state.safetensors",
    ]
    assert not list(here.glob(".*"))


def test_time_tells_a_factory_the_state(here: Path) -> None:
    """Without a solver file, too."""
    (here / "stated.py").write_text(
        "import spirals\n\n"
        "def make(state):\n    print(state.phase, state.level)\n    return spirals.make(state.phase)\n"
    )
    out, _ = run(here, "time", "--net", "stated:make", "--iterations", "1")
    assert out == "TRAIN 0\n"


def test_time(here: Path) -> None:
    out, err = run(here, "time", "--net", "spirals:make", "--iterations", "5", "--json")
    found = json.loads(out)
    assert [each["layer"] for each in found.pop("layers")] == ["data", "ip1", "ip2", "ip3", "loss"]
    assert set(found) == {"forward_ms", "backward_ms", "update_ms", "total_ms"}
    assert all(each >= 0 for each in found.values())
    assert "Average Forward pass: " in err
    _, err = run(
        here, "time", "--net", "spirals:make", "--solver", "solver.prototxt", "--iterations", "5",
    )  # fmt: skip
    assert "Average Update: " in err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--snapshot", "a.solverstate", "--weights", "a.caffemodel"), 2, "not both"),
        (("--sigint_effect", "explode"), 2, "stop, snapshot or none"),
        (("--sigint-effect", "explode"), 2, "stop, snapshot or none"),
        (("--backend", "gpu"), 2, "no backend 'gpu'; did you mean 'cuda'?"),
        (("--net", "spirals:nothing"), 1, "spirals has no 'nothing'; its functions are 'make' and 'spirals'"),
        (("--net", "spiral:make"), 1, "there is no module 'spiral' in "),
        (("--net", "spirals:spirals"), 1, "nothing is known to give its argument count, seed"),
        (("--solver", "nowhere.prototxt"), 1, "nowhere.prototxt: No such file or directory"),
        (("--snapshot", "nowhere.solverstate"), 1, "nowhere.solverstate: No such file or directory"),
        (("--weights", "solver.prototxt,nowhere.caffemodel"), 1, "nowhere.caffemodel: No such file"),
        (("--weights", "solver.prototxt"), 1, "solver.prototxt"),
        (("--log", "nowhere/run.jsonl"), 1, "nowhere/run.jsonl: the log can't be written"),
    ],
)
def test_what_is_wrong_is_said(
    here: Path, arguments: tuple[str, ...], code: int, says: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from solvergen.cli.app import run as command

    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "spirals", raising=False)
    assert command([*TRAIN, *arguments]) == code
    err = " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().err).split())
    assert says in err
    assert "Traceback" not in err


RECORDING = """
import spirals
seen = []

def make(params, phase, source, state):
    seen.append((params.max_iter, phase, source.path, state.phase, state.level, state.stage))
    return spirals.make(phase)
"""


@pytest.fixture
def inside(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example's folder, for commands that run in this process."""
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("spirals", "recording"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return here


def test_what_the_factory_gets_and_a_log_of_caffes_form(inside: Path) -> None:
    from solvergen.cli.app import run as command
    from solvergen.solver.logs.reading import read_log

    (inside / "recording.py").write_text(RECORDING)
    edit(inside, r"^max_iter: 2000", 'max_iter: 100 train_state { level: 1 stage: "a" }')
    arguments = ("--net", "recording:make", "--level", "2", "--stage", "b,c", "--log", "run.log")
    assert command([*TRAIN, *arguments]) == 0
    assert sys.modules["recording"].seen == [
        (100, "TRAIN", "spirals.py", "TRAIN", 2, ("a", "b", "c")),
        (100, "TEST", "spirals.py", "TEST", 0, ()),
    ]
    log = read_log("run.log")
    assert log.loss.iterations == (0, 100)
    assert list(log.tests[0].outputs) == ["accuracy", "loss"]


def test_weights_of_the_solver_file(inside: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from solvergen.cli.app import run as command

    edit(inside, r"^max_iter: 2000", "max_iter: 1")
    assert command([*TRAIN]) == 0
    edit(inside, r"^max_iter: 1", 'max_iter: 2 weights: "spirals_iter_1.model.safetensors"')
    capsys.readouterr()
    assert command([*TRAIN]) == 0
    assert "Finetuning from spirals_iter_1.model.safetensors" in capsys.readouterr().err
    # A snapshot names its own model.
    assert command([*TRAIN, "--snapshot", "spirals_iter_1.state.safetensors"]) == 0
    assert "Finetuning" not in capsys.readouterr().err
