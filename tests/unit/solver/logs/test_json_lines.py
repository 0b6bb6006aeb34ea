"""JSON lines say what happened, and are read again even where a process was killed in the middle of one."""

from __future__ import annotations

import contextlib
import gc
import json
import math
import subprocess
import sys
import warnings
from datetime import datetime, timezone
from pathlib import Path

import pytest

from solvergen.solver.logs.caffe_log import CaffeLog
from solvergen.solver.logs.json_lines import JsonLines
from solvergen.solver.logs.reading import LogError, read_log
from solvergen.solver.logs.sinks import LineFile
from solvergen.solver.training import events
from solvergen.solver.training.events import OutputValue

ROOT = Path(__file__).parents[4]
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
RUN = [
    events.Started(0, net="toy", solver_type="SGD", policy="fixed", backend="numpy", max_iter=2),
    events.TestStarted(0, net=0),
    events.TestOutputs(
        0, net=0, values=(OutputValue(0, "p", 0.5, 0.0), OutputValue(1, "l", 3.0, 1.0)), loss=3.0
    ),
    events.Iteration(0, loss=2.0, smoothed=1.5, lr=0.25),
    events.Outputs(0, (OutputValue(0, "l", 2.0, 1.0),)),
    events.RateUsed(0, lr=0.25, displayed=True),
    events.Updated(1, loss=2.0, smoothed=1.5, lr=0.25),
    events.Iteration(2, loss=1.0, smoothed=1.25, lr=0.25, final=True),
    events.Finished(2),
]


def test_what_stands_in_a_line() -> None:
    lines: list[str] = []
    log = JsonLines(lines.append, clock=lambda: WHEN)
    for event in RUN:
        log.handle(event)
    records = [json.loads(line) for line in lines]
    assert [record["event"] for record in records] == [
        "started",
        "test_started",
        "test_outputs",
        "iteration",
        "outputs",
        "iteration",
        "finished",
    ]
    assert records[2]["values"][0] == {"index": 0, "name": "p", "value": 0.5, "loss_weight": 0.0}
    assert records[3] == {
        "event": "iteration",
        "time": "2026-01-02T03:04:05+00:00",
        "iter": 0,
        "loss": 2.0,
        "smoothed": 1.5,
        "lr": 0.25,
        "seconds": 0.0,
        "iterations": 0,
        "final": False,
    }


def test_what_json_has_no_number_for() -> None:
    lines: list[str] = []
    JsonLines(lines.append).handle(events.Iteration(1, loss=math.inf, smoothed=math.nan, lr=-math.inf))
    record = json.loads(lines[0], parse_constant=lambda name: pytest.fail(name))
    assert (record["loss"], record["smoothed"], record["lr"]) == ("inf", "nan", "-inf")


def test_both_forms_are_read_alike(tmp_path: Path) -> None:
    paths = [tmp_path / "run.jsonl", tmp_path / "run.log"]
    for path, form in zip(paths, (JsonLines, CaffeLog), strict=True):
        file = LineFile(path)
        listener = form(file)
        for event in RUN:
            listener.handle(event)
        file.close()
    ours, caffes = (read_log(path) for path in paths)
    assert ours.loss == caffes.loss
    assert ours.loss.values == (1.5, 1.25)
    assert ours.rate == caffes.rate
    assert ours.train == caffes.train
    assert ours.tests == caffes.tests
    assert ours.tests[0].losses == {"l", "total loss"}


def test_a_file_is_closed_by_whoever_opened_it(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with contextlib.suppress(ZeroDivisionError), LineFile(tmp_path / "run.jsonl") as file:
            JsonLines(file).handle(RUN[0])
            raise ZeroDivisionError
        file("too late")
        del file
        gc.collect()
    assert not told
    assert (tmp_path / "run.jsonl").read_text().count("\n") == 1


def test_half_a_line_of_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"event": "iteration", "iter": 0, "smo')
    file = LineFile(path)
    JsonLines(file).handle(events.Iteration(7, loss=1.0, smoothed=1.0, lr=1.0))
    file.close()
    log = read_log(path)
    assert log.loss.iterations == (7,)
    assert log.warnings == ("line 1 isn't a whole record, and was passed over",)


def test_a_log_that_cant_be_opened(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="the log can't be written: No such file"):
        LineFile(tmp_path / "nowhere" / "run.jsonl")


def test_a_full_disk_ends_the_log_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    file = LineFile("/dev/full")
    file("one")
    file("two")
    assert capsys.readouterr().err == "solvergen: /dev/full: the log ends here: No space left on device\n"


def test_stderr_that_nobody_reads_any_more() -> None:
    code = (
        "import time\nfrom solvergen.solver.logs.sinks import to_stderr\n"
        "for i in range(3):\n    to_stderr('x' * 100_000)\n    time.sleep(0.05)\nprint('done')\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stderr is not None
    assert process.stdout is not None
    process.stderr.close()
    assert process.stdout.read() == b"done\n"
    process.stdout.close()
    assert process.wait() == 0


def test_a_name_with_odd_bytes_ends_no_log(tmp_path: Path) -> None:
    file = LineFile(tmp_path / "run.log")
    file("net caf\udce9")
    file("\u00e9")
    file.close()
    assert (tmp_path / "run.log").read_bytes() == b"net caf\\udce9\n\xc3\xa9\n"
