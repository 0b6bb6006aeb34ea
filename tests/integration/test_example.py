"""The example, run as a user runs it: it learns, and it can be killed at any moment."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_digits.py"


def command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(EXAMPLE), "--out", str(out), *arguments]


def train(out: Path, *arguments: str) -> str:
    done = subprocess.run(command(out, *arguments), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def digest(text: str) -> str:
    found = re.search(r"^parameters ([0-9a-f]{64})$", text, re.MULTILINE)
    assert found
    return found[1]


def accuracy(text: str) -> float:
    found = re.search(r"^test accuracy ([0-9.]+),", text, re.MULTILINE)
    assert found
    return float(found[1])


def test_adam_learns_the_digits_and_leaves_its_curves(tmp_path: Path) -> None:
    started = time.monotonic()
    text = train(tmp_path)
    assert time.monotonic() - started < 60
    assert accuracy(text) >= 0.96
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    rows = (tmp_path / "curves.csv").read_text().splitlines()
    assert rows[0] == "step,loss,test_accuracy"
    assert len(rows) == 1 + 1800
    assert rows[-1].startswith("1800,")
    assert float(rows[-1].split(",")[2]) >= 0.96
    assert json.loads((tmp_path / "settings.json").read_text())["optimizer"] == "adam"
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "curves.csv",
        "curves.png",
        "settings.json",
        "snapshot.safetensors",
    ]


def test_resuming_says_what_it_resumes(tmp_path: Path) -> None:
    short = ("--epochs", "1", "--hidden", "8", "--lr", "0.01", "--resume")
    assert "there is no snapshot in" in train(tmp_path, *short)
    again = train(tmp_path, *short)
    assert "resumed after step 45\n" in again
    assert "no snapshot" not in again
    changed = command(tmp_path, *short[:-3], "--lr", "0.02", "--amsgrad", "--seed", "3", "--resume")
    done = subprocess.run(changed, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for text in ("amsgrad: not given then, True now", "lr: 0.01 then, 0.02 now", "seed: 0 then, 3 now"):
        assert f"    {text}\n" in done.stderr
    assert done.stderr.count(" then, ") == 3
    (tmp_path / "settings.json").write_text("[")
    done = subprocess.run(changed, capture_output=True, text=True, check=False)
    assert "which can't be read" in done.stderr


def test_an_interrupt_during_the_imports_is_silent(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        command(tmp_path / "out"), capture_output=True, text=True, check=False, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_killed_and_resumed_ends_with_the_same_bits(tmp_path: Path, number: signal.Signals) -> None:
    options = (
        "--epochs",
        "20",
        "--hidden",
        "16",
        "--snapshot-every",
        "37",
        "--amsgrad",
        "--backend",
        "numpy",
    )
    whole, pieces = tmp_path / "whole", tmp_path / "pieces"
    expected = train(whole, *options)
    snapshot = pieces / "snapshot.safetensors"
    killed = 0
    for _ in range(100):
        before = snapshot.stat().st_mtime_ns if snapshot.exists() else None
        child = subprocess.Popen(
            command(pieces, *options, "--resume"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        # Kill it as soon as it has written one more snapshot, wherever it is by then.
        while child.poll() is None:
            if snapshot.exists() and snapshot.stat().st_mtime_ns != before and killed < 3:
                child.send_signal(number)
                break
            time.sleep(0.002)
        out, err = child.communicate()
        assert err == ""
        if child.returncode == 0:
            break
        assert child.returncode == (-number if number == signal.SIGKILL else 128 + number)
        killed += 1
    assert killed == 3
    assert "resumed after step" in out
    assert digest(out) == digest(expected)
    assert accuracy(out) == accuracy(expected)
    assert (pieces / "curves.csv").read_bytes() == (whole / "curves.csv").read_bytes()
    assert (pieces / "curves.png").read_bytes() == (whole / "curves.png").read_bytes()


def test_backends_train_to_the_same_bits(tmp_path: Path) -> None:
    from solvergen.runtime import native

    if (reason := native.available()) is not None:
        pytest.skip(reason)
    ends = [digest(train(tmp_path, "--epochs", "2", "--backend", backend)) for backend in ("numpy", "cpu")]
    assert ends[0] == ends[1]


def test_hyperparameters_and_options_come_from_the_command_line(tmp_path: Path) -> None:
    default = digest(train(tmp_path, "--epochs", "1"))
    told = ("--epochs", "1", "--optimizer", "sgd", "--lr", "0.05", "--momentum", "0.9", "--nesterov")
    assert digest(train(tmp_path, *told)) != default
    settings = json.loads((tmp_path / "settings.json").read_text())
    assert settings["hyperparameters"] == {"lr": 0.05, "momentum": 0.9}
    assert settings["options"] == {"nesterov": True}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--optimizer", "adamm"), "no optimizer 'adamm'"),
        (("--package", "nowhere"), "no package 'nowhere'"),
        (("--lr", "-1"), "lr"),
        (("--optimizer", "sgd", "--nesterov"), "nesterov"),
        (("--beta1", "0.5", "--resume"), "beta1: not given then, 0.5 now"),
        (("--epochs", "0"), "at least 1"),
    ],
)
def test_mistakes_are_sentences(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    (tmp_path / "settings.json").write_text("{}")
    done = subprocess.run(command(tmp_path, *arguments), capture_output=True, text=True, check=False)
    assert done.returncode in (1, 2)
    assert text in done.stderr
    assert "Traceback" not in done.stderr
