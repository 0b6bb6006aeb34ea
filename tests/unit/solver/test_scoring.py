"""Scores are means over batches, number by number; times are averages after a round that doesn't count."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvergen.solver.net.protocol import Output
from solvergen.solver.scoring import Times, measure, score


@dataclass
class Net:
    """Puts out the number of the pass."""

    passes: int = 0
    calls: list[str] = field(default_factory=list)

    def forward(self) -> tuple[Output, ...]:
        self.calls.append("forward")
        self.passes += 1
        number = float(self.passes)
        return (
            Output("p", np.array([[number, 10 * number]])),
            Output("l", np.array(number), loss_weight=0.5),
        )

    def forward_backward(self) -> float:
        self.calls.append("forward_backward")
        return 0.0

    def clear_diffs(self) -> None:
        self.calls.append("clear_diffs")


def test_means() -> None:
    told: list[tuple[int, str, float]] = []
    found = score(Net(), 3, lambda *each: told.append(each))  # type: ignore[arg-type]
    assert [(one.index, one.name, one.value, one.loss_weight) for one in found.outputs] == [
        (0, "p", 2.0, 0.0),
        (1, "p", 20.0, 0.0),
        (2, "l", 2.0, 0.5),
    ]
    assert found.loss == 1.0
    assert told[:3] == [(0, "p", 1.0), (0, "p", 10.0), (0, "l", 1.0)]
    assert len(told) == 9


def test_what_is_not_finite_in_json() -> None:
    class Broken(Net):
        def forward(self) -> tuple[Output, ...]:
            return (Output("l", np.array(np.nan), loss_weight=1.0),)

    found = score(Broken(), 1, lambda *each: None)  # type: ignore[arg-type]
    assert json.loads(json.dumps(found.as_json(), allow_nan=False))["loss"] == "nan"


def test_times() -> None:
    class Solver:
        net = Net()

        def apply_update(self) -> None:
            self.net.calls.append("update")

    solver: Any = Solver()
    times = measure(solver, 2)
    assert solver.net.calls == ["clear_diffs", "forward", "forward_backward", "update"] * 3
    assert times.total > 0
    assert dict(Times(1.0, 2.0, 3.0, 9.0).averages()) == {
        "Forward pass": 1.0,
        "Backward pass": 2.0,
        "Forward-Backward": 3.0,
        "Update": 3.0,
    }
