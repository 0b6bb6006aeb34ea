"""Reading JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from solvergen.solver.logs.caffe_reader import TEST_LOSS
from solvergen.solver.logs.curves import Gatherer, NetOutput

_MOST = 10**18


def read_json_lines(lines: Iterable[str], into: Gatherer) -> None:
    """Take what is known from records; a line that isn't one is passed over with a warning.

    A process that was killed may have written half a line.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            _take(json.loads(line), into)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            into.warnings.append(f"line {number} isn't a whole record, and was passed over")


def _take(record: dict[str, Any], into: Gatherer) -> None:
    kind, iteration = record["event"], int(record["iter"])
    if not 0 <= iteration < _MOST:
        raise ValueError(f"iteration {iteration}")
    if kind == "iteration":
        into.loss(iteration, float(record["smoothed"]))
        if not record["final"]:  # no update follows, so no rate is used
            into.rate(iteration, float(record["lr"]))
    elif kind == "outputs":
        into.train(iteration, _outputs(record))
    elif kind == "test_outputs":
        outputs = _outputs(record)
        if record["loss"] is not None:
            outputs = [NetOutput(TEST_LOSS, float(record["loss"]), True), *outputs]
        into.test(iteration, int(record["net"]), outputs)


def _outputs(record: dict[str, Any]) -> list[NetOutput]:
    return [
        NetOutput(str(output["name"]), float(output["value"]), bool(output["loss_weight"]))
        for output in record["values"]
    ]
