"""Reading the log of a training, whichever form it has."""

from __future__ import annotations

from pathlib import Path

from solvergen.errors import SolvergenError
from solvergen.solver.logs.caffe_reader import read_caffe
from solvergen.solver.logs.curves import Gatherer, TrainingLog
from solvergen.solver.logs.json_reader import read_json_lines


class LogError(SolvergenError):
    """A log can't be read, written or drawn."""


def _encoding(path: Path) -> str:
    """By the mark that files begin with under Windows; Caffe's and ours have none."""
    with path.open("rb") as file:
        mark = file.read(2)
    return "utf-16" if mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def read_log(path: str | Path) -> TrainingLog:
    """Read a log in Caffe's form (Caffe's own, too) or one of JSON lines.

    Raises:
        LogError: there is no such file, or nothing about a training in it.
    """
    path = Path(path)
    gatherer = Gatherer()
    try:
        with path.open(encoding=_encoding(path), errors="replace") as file:
            is_json = file.read(1) == "{"
            file.seek(0)
            (read_json_lines if is_json else read_caffe)(file, gatherer)
    except OSError as error:
        raise LogError(f"{path}: {error.strerror or error}") from error
    log = gatherer.done(path)
    if not (log.loss or log.rate or log.train.outputs or log.tests):
        raise LogError(
            f"{path}: nothing about a training was found: neither lines such as "
            f"\"Iteration 100, loss = 0.25\" (Caffe's form) nor JSON lines of solvergen's"
        )
    return log
