"""The lines are Caffe's, so what reads Caffe's logs reads ours."""

from __future__ import annotations

import os
import re
from datetime import datetime

import pytest

from solvergen.solver.logs.caffe_log import CaffeLog, lines_of
from solvergen.solver.logs.glog import number
from solvergen.solver.training import events
from solvergen.solver.training.events import Event, OutputValue

WHEN = datetime(2016, 3, 21, 17, 36, 4, 5432)

LOSS = OutputValue(0, "loss", 0.5, 2.0)
ACCURACY = OutputValue(1, "accuracy", 1 / 3, 0.0)

# What Caffe's sources print, by hand.
LINES: list[tuple[Event, list[str]]] = [
    (
        events.Started(0, net="LeNet", solver_type="SGD", policy="inv", backend="cpu", max_iter=9),
        [
            "Solving LeNet",
            "Learning Rate Policy: inv",
            "SGD on backend cpu, up to iteration 9",
        ],
    ),
    (
        events.Resumed(5, path="a_iter_5.solverstate", solver_type="Adam"),
        [
            "Restoring previous solver status from a_iter_5.solverstate",
            "SGDSolver: restoring history",
        ],
    ),
    (
        events.Iteration(100, loss=9.0, smoothed=0.2314362, lr=0.01, seconds=0.6941743, iterations=100),
        ["Iteration 100 (144.056 iter/s, 0.694174s/100 iters), loss = 0.231436"],
    ),
    (
        events.Iteration(0, loss=9.0, smoothed=2.0, lr=0.01),
        ["Iteration 0 (0 iter/s, 0s/100 iters), loss = 2"],
    ),
    (
        events.Iteration(200, loss=9.0, smoothed=float("nan"), lr=0.01, final=True),
        ["Iteration 200, loss = nan"],
    ),
    (
        events.Outputs(0, (LOSS, ACCURACY)),
        [
            "    Train net output #0: loss = 0.5 (* 2 = 1 loss)",
            "    Train net output #1: accuracy = 0.333333",
        ],
    ),
    (events.RateUsed(100, lr=0.00992565, displayed=True), ["Iteration 100, lr = 0.00992565"]),
    (events.RateUsed(101, lr=0.00992565, displayed=False), []),
    (events.Updated(101, loss=1.0, smoothed=1.0, lr=1.0), []),
    (
        events.Clipped(3, norm=70.0, threshold=35.0, scale=0.5),
        ["Gradient clipping: scaling down gradients (L2 norm 70 > 35) by scale factor 0.5"],
    ),
    (events.TestStarted(500, net=1), ["Iteration 500, Testing net (#1)"]),
    (events.TestInterrupted(500, net=1), ["Test interrupted."]),
    (
        events.TestOutputs(500, net=1, values=(ACCURACY,), loss=1e-7),
        ["Test loss: 1e-07", "    Test net output #1: accuracy = 0.333333"],
    ),
    (
        events.Snapshotting(7, path="a_iter_7.caffemodel", kind="model", format="BINARYPROTO"),
        ["Snapshotting to binary proto file a_iter_7.caffemodel"],
    ),
    (
        events.Snapshotting(7, path="a_iter_7.solverstate", kind="state", format="BINARYPROTO"),
        ["Snapshotting solver state to binary proto file a_iter_7.solverstate"],
    ),
    (
        events.Snapshotting(7, path="a_iter_7.solverstate.h5", kind="state", format="HDF5"),
        ["Snapshotting solver state to HDF5 file a_iter_7.solverstate.h5"],
    ),
    (events.Finished(9), ["Optimization Done."]),
    (events.EarlyStop(9), ["Optimization stopped early."]),
    (
        events.DebugInfo(0, phase="update", layer="ip1", name="ip1_w", index=0, data=0.5, diff=0.25),
        ["    [Update] Layer ip1, param ip1_w data: 0.5; diff: 0.25"],
    ),
    (
        events.DebugInfo(0, phase="backward", layer="ip1", name="ip1_w", index=0, data=0.5, diff=0.25),
        ["    [Backward] Layer ip1, param blob 0 diff: 0.25"],
    ),
    (
        events.DebugNorms(0, data_l1=1.0, diff_l1=2.0, data_l2=3.0, diff_l2=4.0),
        ["    [Backward] All net params (data, diff): L1 norm = (1, 2); L2 norm = (3, 4)"],
    ),
]


@pytest.mark.parametrize(("event", "texts"), LINES)
def test_the_lines_of(event: Event, texts: list[str]) -> None:
    assert [text for _, text in lines_of(event, display=100)] == texts


def test_what_stands_before_them() -> None:
    lines: list[str] = []
    log = CaffeLog(lines.append, clock=lambda: WHEN)
    log.handle(events.RateUsed(3, lr=0.1, displayed=True))
    log.handle(events.Warned(3, "one\ntwo"))
    head = rf"0321 17:36:04\.005432 +{os.getpid()} "
    assert re.fullmatch(rf"I{head}sgd_solver\.cpp:112\] Iteration 3, lr = 0\.1", lines[0])
    assert re.fullmatch(rf"W{head}solvergen\] one\nW{head}solvergen\] two", lines[1])


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1e-5, "1e-05"), (123456.5, "123456"), (1234567.0, "1.23457e+06"), (-0.1, "-0.1")],
)
def test_numbers_are_as_streams_print_them(value: float, text: str) -> None:
    assert number(value) == text


# Patterns of scripts that read Caffe's logs, as many of these have them.
SCRIPTS = [
    r"Iteration (\d+)",
    r"Train net output #(\d+): (\S+) = ([\.\deE+-]+)",
    r"Test net output #(\d+): (\S+) = ([\.\deE+-]+)",
    r"lr = ([-+]?[0-9]*\.?[0-9]+([eE]?[-+]?[0-9]+)?)",
    r"I(\d{2})(\d{2}) (\d+):(\d+):(\d+)\.(\d{6}).*Iteration (\d+), Testing net \(#(\d+)\)",
    r"solver\.cpp:239\] Iteration (\d+) \((\S+) iter/s, (\S+)s/(\d+) iters\), loss = (\S+)",
    r"Snapshotting to binary proto file (\S+)",
    r"\] Solving ",
]


def test_scripts_find_what_they_look_for() -> None:
    lines: list[str] = []
    log = CaffeLog(lines.append, display=100, clock=lambda: WHEN)
    for event, _ in LINES:
        log.handle(event)
    for pattern in SCRIPTS:
        assert any(re.search(pattern, line) for line in lines), pattern


def test_times_are_found_as_caffes_extractor_finds_them() -> None:
    # It splits a line at blanks: month and day in the first word, the time of day in the second.
    lines: list[str] = []
    CaffeLog(lines.append, clock=lambda: WHEN).handle(events.Finished(1))
    first, second, *_ = lines[0].split()
    assert (int(first[1:3]), int(first[3:])) == (3, 21)
    clock, _, micro = second.partition(".")
    assert ([int(part) for part in clock.split(":")], int(micro)) == ([17, 36, 4], 5432)
