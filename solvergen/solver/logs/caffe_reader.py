"""Reading log lines of Caffe's form, of any of its versions: its own, and ours."""

from __future__ import annotations

import re
from collections.abc import Iterable

from solvergen.solver.logs.curves import Gatherer, NetOutput

_NUMBER = r"(?P<value>[-+]?(?:nan|inf|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?))"
_COUNT = r"\d{1,18}"  # what is longer is no count of Caffe's
# Before 2016 nothing stood in the parentheses' place.
_LOSS = re.compile(rf"Iteration (?P<iteration>{_COUNT})(?: \([^)]*\))?, loss = {_NUMBER}", re.IGNORECASE)
_RATE = re.compile(rf"Iteration (?P<iteration>{_COUNT}), lr = {_NUMBER}", re.IGNORECASE)
_TESTING = re.compile(rf"Iteration (?P<iteration>{_COUNT}), Testing net \(#(?P<net>{_COUNT})\)")
_OUTPUT = re.compile(
    rf"(?P<phase>Train|Test) net output #\d+: (?P<name>\S+) = {_NUMBER}(?P<loss> \(\*)?", re.IGNORECASE
)
_TEST_LOSS = re.compile(rf"Test loss: {_NUMBER}", re.IGNORECASE)
TEST_LOSS = "total loss"


def read_caffe(lines: Iterable[str], into: Gatherer) -> None:
    """Find losses, rates and outputs in ``lines``; everything else is passed over."""
    iteration = 0
    net: int | None = None  # of the test whose outputs are expected
    outputs: list[NetOutput] = []

    def finish() -> None:
        if outputs and net is None:
            into.train(iteration, outputs)
        elif outputs and net is not None:
            into.test(iteration, net, outputs)
        outputs.clear()

    for line in lines:
        if found := _OUTPUT.search(line):
            outputs.append(NetOutput(found["name"], float(found["value"]), found["loss"] is not None))
        elif found := _TEST_LOSS.search(line):
            outputs.append(NetOutput(TEST_LOSS, float(found["value"]), True))
        elif found := _TESTING.search(line):
            finish()
            iteration, net = int(found["iteration"]), int(found["net"])
        elif found := _LOSS.search(line):
            finish()
            iteration, net = int(found["iteration"]), None
            into.loss(iteration, float(found["value"]))
        elif found := _RATE.search(line):
            finish()
            iteration, net = int(found["iteration"]), None
            into.rate(iteration, float(found["value"]))
    finish()
