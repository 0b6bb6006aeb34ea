from __future__ import annotations

import errno
import inspect
import json
import sys

import pytest

from generated import Adam
from solvergen.bench import benchmark, parse_sizes
from solvergen.bench.picture import draw
from solvergen.bench.result import LIMIT
from solvergen.bench.run import Entry
from solvergen.bench.sizes import DEFAULT
from solvergen.cli.app import run
from solvergen.cli.bench import bench
from solvergen.errors import BackendUnavailable, BenchmarkError, HyperparameterError
from solvergen.runtime import native

NO_COMPILER = native.available()
needs_compiler = pytest.mark.skipif(NO_COMPILER is not None, reason=str(NO_COMPILER))
SMALL = ["--sizes", "2x10", "--rounds", "0.05", "--peers", "none"]


@needs_compiler
def test_measures_ours_beside_the_limit():
    told = []
    (result,) = benchmark(
        [Entry(Adam, {"amsgrad": True, "lr": 0.5})],
        parse_sizes("2x10"),
        backends=("cpu", "numpy"),
        peers=(),
        factor=0.05,
        progress=told.append,
    )
    assert [each.name for each in result.measured] == [LIMIT, "cpu", "numpy"]
    assert (result.optimizer, result.settings, result.bytes_per_element) == (
        "adam",
        "amsgrad=true,lr=0.5",
        36,
    )
    assert all(0 < each.fastest_ms <= each.median_ms for each in result.measured)
    assert result.of("cpu").to_ours == 1.0
    assert told[0].done == 0
    assert told[-1].done == told[-1].total


def test_what_cannot_be_timed_is_said():
    with pytest.raises(BenchmarkError, match="'abacus' can't be timed; there are cpu, numpy"):
        list(benchmark([], [], backends=("abacus",)))
    with pytest.raises(BenchmarkError, match="no backend to time"):
        list(benchmark([], [], backends=()))
    with pytest.raises(HyperparameterError):
        list(benchmark([Entry(Adam, {"lr": -1.0})], parse_sizes("3"), backends=("numpy",)))


def test_without_a_compiler_numpy_is_timed_alone(monkeypatch):
    monkeypatch.setattr(native, "available", lambda: "there is no compiler")
    entry, sizes = Entry(Adam, {}), parse_sizes("3")
    (result,) = benchmark([entry], sizes, backends=("numpy", "cpu"), peers=("torch",), factor=0.05)
    assert [each.name for each in result.measured] == ["numpy"]
    assert result.measured[0].to_limit is None
    assert result.measured[0].to_ours == 1.0  # of the first backend that was timed
    assert dict(result.left_out)[LIMIT] == "there is no compiler"
    assert "no counterpart" in dict(result.left_out)["torch"]
    with pytest.raises(BackendUnavailable, match="no compiler"):
        list(benchmark([entry], sizes, backends=("cpu",), peers=()))


@needs_compiler
def test_the_command_prints_json_and_draws(tmp_path, capsys):
    chart = tmp_path / "chart.svg"
    arguments = ["bench", "adam:amsgrad=true", "lion", *SMALL, "--json", "--picture", str(chart)]
    assert run(arguments) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [(r["optimizer"], r["settings"]) for r in printed["results"]] == [
        ("adam", "amsgrad=true"),
        ("lion", ""),
    ]
    assert {"processor", "threads", "load", "numpy"} <= set(printed["conditions"])
    assert b"</svg>" in chart.read_bytes()


@needs_compiler
def test_the_command_prints_a_table(capsys):
    assert run(["bench", "lion", *SMALL]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split("\t")[:3] == ["optimizer", "size", "contender"]
    assert [row.split("\t")[2] for row in rows[:2]] == [LIMIT, "cpu"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing", *SMALL], "no optimizer 'nothing'"),
        (["adam:amsgrad", *SMALL], "settings are written name=number"),
        (["adam:lr=much", *SMALL], "settings are written name=number"),
        (["adam:foo=1", *SMALL], "adam has no setting 'foo'; it has lr, beta1"),
        (["adam:=1", *SMALL], "adam has no setting ''"),
        (["adam:lr=1,lr=2", *SMALL], "gives lr twice"),
        (["adam", *SMALL, "--rounds", "inf"], "--rounds"),
        (["adam", "--sizes", "many"], "is no size"),
        (["adam", "--dtype", "int8"], "no dtype 'int8'"),
        (["adam", "--picture", "chart.bmp"], "ends in .png"),
        (["adam", "--picture", "no such folder/chart.png"], "there is no folder 'no such folder'"),
        (["adam", *SMALL[:-2], "--peers", "abacus"], "'abacus' can't be timed"),
    ],
)
def test_wrong_usage(arguments, says, capsys):
    assert run(["bench", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_refused_setting_is_a_finding(capsys):
    assert run(["bench", "adam:lr=-1", *SMALL]) == 1
    assert "lr" in capsys.readouterr().err


@needs_compiler
def test_figures_are_not_lost_with_the_picture(tmp_path, capsys, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("solvergen.bench.picture.draw", full)
    assert run(["bench", "lion", *SMALL, "--picture", str(tmp_path / "chart.png")]) == 1
    printed = capsys.readouterr()
    assert "lion" in printed.out
    assert "chart.png" in printed.err


def test_what_a_picture_needs_is_looked_for_first(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert run(["bench", "lion", *SMALL, "--picture", str(tmp_path / "chart.png")]) == 1
    printed = capsys.readouterr()
    assert "needs matplotlib" in printed.err
    assert not printed.out


def test_the_command_s_sizes_are_the_usual_ones():
    assert inspect.signature(bench).parameters["sizes"].default == DEFAULT


def test_too_little_memory_is_said_and_no_bug(monkeypatch, capsys):
    def too_much(*arguments, **settings):
        raise MemoryError("32 GiB")

    monkeypatch.setattr("solvergen.bench.benchmark", too_much)
    assert run(["bench", "adam", *SMALL]) == 1
    assert "the machine hasn't enough memory for this: 32 GiB" in capsys.readouterr().err


def test_nothing_to_draw(tmp_path):
    with pytest.raises(BenchmarkError, match="nothing to draw"):
        draw(tmp_path / "chart.png", [], {})
    assert not list(tmp_path.iterdir())
