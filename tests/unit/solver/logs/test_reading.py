"""Logs are read, whoever wrote them, and whatever happened to the run."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from solvergen.solver.logs.reading import LogError, read_log

# The forms are those of Caffe 1.0; the numbers are made up.
CAFFE = """\
I0321 17:36:53.838543 14186 caffe.cpp:239] Starting Optimization
I0321 17:36:53.838549 14186 solver.cpp:289] Solving Toy
I0321 17:36:53.838552 14186 solver.cpp:290] Learning Rate Policy: step
I0321 17:36:53.840003 14186 solver.cpp:347] Iteration 0, Testing net (#0)
I0321 17:36:54.054323 14194 data_layer.cpp:73] Restarting data prefetching from start.
I0321 17:36:54.062096 14186 solver.cpp:414]     Test net output #0: accuracy = 0.125
I0321 17:36:54.062131 14186 solver.cpp:414]     Test net output #1: loss = 2.5 (* 1 = 2.5 loss)
I0321 17:36:54.069643 14186 solver.cpp:239] Iteration 0 (-2.32449e-30 iter/s, 0.231025s/50 iters), loss = 2.75
I0321 17:36:54.069710 14186 solver.cpp:258]     Train net output #0: loss = 2.625 (* 1 = 2.625 loss)
I0321 17:36:54.069738 14186 sgd_solver.cpp:112] Iteration 0, lr = 0.01
I0321 17:36:54.764420 14186 solver.cpp:239] Iteration 50 (144.056 iter/s, 0.347s/50 iters), loss = 1.5
I0321 17:36:54.764458 14186 solver.cpp:258]     Train net output #0: loss = 1.25 (* 1 = 1.25 loss)
I0321 17:36:54.764469 14186 sgd_solver.cpp:112] Iteration 50, lr = 1e-03
I0321 17:38:07.069780 14186 solver.cpp:464] Snapshotting to binary proto file toy_iter_100.caffemodel
I0321 17:38:07.089138 14186 solver.cpp:327] Iteration 100, loss = -0.5
I0321 17:38:07.089169 14186 solver.cpp:347] Iteration 100, Testing net (#0)
I0321 17:38:07.301775 14186 solver.cpp:414]     Test net output #0: accuracy = 0.75
I0321 17:38:07.301798 14186 solver.cpp:414]     Test net output #1: loss = nan (* 1 = nan loss)
I0321 17:38:07.301802 14186 solver.cpp:332] Optimization Done.
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "run.log"
    path.write_text(text)
    return path


def test_a_log_of_caffes(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, CAFFE))
    assert (log.loss.iterations, log.loss.values) == ((0, 50, 100), (2.75, 1.5, -0.5))
    assert (log.rate.iterations, log.rate.values) == ((0, 50), (0.01, 0.001))
    assert log.train.outputs["loss"].values == (2.625, 1.25)
    assert list(log.tests) == [0]
    assert log.tests[0].losses == {"loss"}
    assert log.tests[0].outputs["accuracy"].iterations == (0, 100)
    assert log.tests[0].outputs["accuracy"].values == (0.125, 0.75)
    first, last = log.tests[0].outputs["loss"].values
    assert first == 2.5
    assert math.isnan(last)
    assert log.last_iteration == 100
    assert log.warnings == ()


def test_the_form_of_2014_and_a_rank_before_it(tmp_path: Path) -> None:
    text = (
        "[0] I0702 16:44:35.539449 111918 solver.cpp:195] Iteration 680, loss = 1.9\n"
        "[0] I0702 16:44:35.539449 111918 solver.cpp:405] Iteration 680, lr = 5e-05\n"
    )
    log = read_log(written(tmp_path, text))
    assert (log.loss.iterations, log.loss.values) == ((680,), (1.9,))
    assert log.rate.values == (5e-05,)


def test_outputs_of_several_elements_and_nets(tmp_path: Path) -> None:
    text = "".join(
        f"Iteration 7, Testing net (#{net})\nTest loss: {net + 0.5}\n"
        f"    Test net output #0: p = {net}\n    Test net output #1: p = 9\n    Test net output #2: q = 3\n"
        for net in (0, 1)
    )
    log = read_log(written(tmp_path, text))
    assert list(log.tests) == [0, 1]
    assert {name: curve.values for name, curve in log.tests[1].outputs.items()} == {
        "total loss": (1.5,),
        "p[0]": (1.0,),
        "p[1]": (9.0,),
        "q": (3.0,),
    }


def test_a_run_that_went_on_from_an_earlier_snapshot(tmp_path: Path) -> None:
    lines = [f"Iteration {i}, loss = {i}.0" for i in (0, 10, 20, 30)]
    lines += [f"Iteration {i}, loss = {i}.5" for i in (20, 30, 40)]
    log = read_log(written(tmp_path, "\n".join(lines)))
    assert log.loss.iterations == (0, 10, 20, 30, 40)
    assert log.loss.values == (0.0, 10.0, 20.5, 30.5, 40.5)


@pytest.mark.parametrize(
    "text", ["", "Iteration 1, loss = ...\n", "hello\n", '{"event": "started"}\n', "\0\xff\n"]
)
def test_nothing_about_a_training(tmp_path: Path, text: str) -> None:
    with pytest.raises(LogError, match=r"run\.log: nothing about a training"):
        read_log(written(tmp_path, text))


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nowhere\.log: No such file"):
        read_log(tmp_path / "nowhere.log")


@pytest.mark.parametrize(
    "data",
    [
        "Iteration 5, loss = 1\n".encode("utf-16"),
        b"\xef\xbb\xbfIteration 5, loss = 1\n",
        b"\x00\xff\nIteration 5, loss = 1\r\nIteration " + b"9" * 5000 + b", loss = 2\n",
        b'\xef\xbb\xbf{"event":"iteration","iter":5,"smoothed":1,"final":true}\n',
        b'{"event":"iteration","iter":5,"smoothed":1,"final":true}\n{"event":"iteration","iter":1e999}\n'
        b'{"event":"iteration","iter":1e300,"smoothed":1,"final":true}\n' + b"[" * 100_000,
    ],
)
def test_odd_bytes(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(data)
    log = read_log(path)
    assert (log.loss.iterations, log.loss.values) == ((5,), (1.0,))
