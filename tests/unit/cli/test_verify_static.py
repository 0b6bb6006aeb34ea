"""``solvergen verify --static``: its table, its JSON, its exit codes and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from solvergen.cli.app import run
from solvergen.errors import BackendUnavailable
from solvergen.runtime.cuda import nvrtc
from solvergen.verify.static.cpu import why_not

SPEC = """\
name: plain
summary: Gradient descent.
hyperparameters:
  lr: {default: 0.1, min: 0}
update:
  - param = param - lr*grad
"""
CPU_ONLY = ("--backends", "cpu", "--dtypes", "float32")
CUDA_ONLY = ("--backends", "cuda", "--arch", "80,9.0,sm_120", "--dtypes", "float32,bfloat16/float32")

needs_nvrtc = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
needs_cpu = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with one spec in specs/."""
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "plain.yaml").write_text(SPEC)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run(("verify", "--static", *arguments))
    out, err = capsys.readouterr()
    return code, out, err


@needs_nvrtc
def test_a_row_for_each_kernel_and_capability(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, *CUDA_ONLY)
    assert (code, err) == (0, "")
    heads, *rows = [line.split("\t") for line in out.splitlines()]
    assert heads == [
        "optimizer",
        "options",
        "dtypes",
        "target",
        "registers",
        "spills",
        "shared",
        "width",
        "loads",
        "stores",
        "occupancy",
        "in flight",
        "bytes",
        "ms",
        "outcome",
    ]
    assert [row[:4] for row in rows] == [
        ["plain", "-", dtypes, f"sm_{number}"]
        for dtypes in ("float32", "bfloat16/float32")
        for number in (80, 90, 120)
    ]
    assert {(row[5], row[6], row[7], row[8], row[9], row[14]) for row in rows} == {
        ("0", "0", "128", "2/2", "1/1", "passed")
    }
    assert [row[12] for row in rows] == ["12"] * 3 + ["8"] * 3
    assert rows[1][13] == "2.50"  # 12 bytes at 4.8 TB/s


@needs_nvrtc
def test_json_and_another_bandwidth(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, *CUDA_ONLY, "--bandwidth", "1000", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["ok"] is report["complete"] is True
    assert [row["ms_per_1e9_parameters"] for row in report["rows"]] == [12.0] * 3 + [8.0] * 3


@needs_nvrtc
@needs_cpu
def test_on_a_terminal_the_times_say_what_they_are_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    code, out, _ = said(capsys, "--arch", "90", "--dtypes", "float32")
    assert code == 0
    assert "ms: for 1e9 parameters at the bandwidth in GB/s of H200 4800 (sm_90)" in out
    assert "vector operations" in out
    _, out, _ = said(capsys, "--arch", "90", "--dtypes", "float32", "--bandwidth", "3350")
    assert "ms: for 1e9 parameters at 3350 GB/s" in out


@needs_nvrtc
def test_findings_are_errors_with_their_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tuple("--prec-div=false" if f == "--prec-div=true" else f for f in nvrtc.FLAGS)
    monkeypatch.setattr(nvrtc, "FLAGS", changed)
    Path("specs/plain.yaml").write_text(SPEC.replace("lr*grad", "lr/grad"))
    code, out, err = said(capsys, "--backends", "cuda", "--arch", "90", "--dtypes", "float32")
    assert code == 1
    assert out.splitlines()[1].endswith("\tapproximation")
    assert err.startswith(
        "plain (-) float32 sm_90:\napproximation: div.full.f32 has no defined value\n  line "
    )
    assert "\n  equation param = param - lr/grad  (specs/plain.yaml:6)\n" in err


@needs_cpu
def test_the_native_kernel_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, *CPU_ONLY)
    assert (code, err) == (0, "")
    heads, row = [line.split("\t") for line in out.splitlines()]
    counted = ["vector operations", "contracted", "loads", "stores"]
    assert heads == ["optimizer", "options", "dtypes", "target", *counted, "outcome"]
    assert row[:4] == ["plain", "-", "float32", "cpu"]
    assert int(row[4]) > 0
    assert row[5:] == ["0", "2/2", "1/1", "passed"]


def test_what_cant_be_looked_at_is_said_and_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(major: int | None = None) -> Any:
        raise BackendUnavailable("the CUDA compiler NVRTC was not found; install it")

    monkeypatch.setattr(nvrtc, "load", missing)
    code, out, err = said(capsys, "--backends", "cuda")
    assert (code, out) == (1, "")
    assert (
        err == "the static checks of cuda were not done: the CUDA compiler NVRTC was not found; install it\n"
    )
    code, out, _ = said(capsys, "--backends", "cuda", "--json")
    assert code == 1
    assert json.loads(out)["complete"] is False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--arch", "90,91"), "no compute capability '91'; there are 75, 80, 86, 87, 89, 90, 100, "),
        (("--arch", ""), "no compute capability ''"),
        (("--arch", "٩٠"), "no compute capability"),
        (("--dtypes", "float"), "no mix of dtypes 'float'"),
        (("--dtypes", "float64/float32"), "no mix of dtypes 'float64/float32'"),
        (("--backends", "numpy"), "static checks of cuda and cpu, not of numpy"),
        (("--bandwidth", "0"), "--bandwidth"),
        (("--bandwidth", "inf"), "isn't a number of GB/s"),
        (("--bandwidth", "nan"), "--bandwidth"),
        (("nope",), "no optimizer 'nope'"),
        (("--replay", "file"), "--static runs nothing"),
        (("--examples", "5"), "--static runs nothing"),
        (("--seed", "0"), "--static runs nothing"),
        (("--replay-dir", "folder"), "--static runs nothing"),
        (("--jobs", "2"), "--static runs nothing"),
    ],
)
def test_refused(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str) -> None:
    code, out, err = said(capsys, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(err.split())


@pytest.mark.parametrize("arguments", [("--arch", "90"), ("--dtypes", "float32"), ("--bandwidth", "1000")])
def test_options_of_static_checks_alone(
    capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert run(("verify", *arguments)) == 2
    assert f"'{arguments[0]}': goes with --static" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("--examples", "5"), ("--seed", "1"), ("--jobs", "2")])
def test_a_replay_draws_nothing(capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    assert run(("verify", "--replay", "file.json", *arguments)) == 2
    assert "--replay has one" in " ".join(capsys.readouterr().err.split())
