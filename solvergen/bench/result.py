"""What was measured, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.bench.sizes import Size
from solvergen.runtime.arrays import HostArray

LIMIT = "traffic limit"
"""The name of the contender that moves a rule's bytes and computes nothing."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One contender: milliseconds a step (median and fastest), and how many times the limit's time and
    solvergen's own (on the first of its backends that was timed) that is.

    Ratios are medians over rounds of the ratio within a round, so that what disturbs some rounds doesn't
    count; None where there is nothing to compare with.
    """

    name: str
    median_ms: float
    fastest_ms: float
    to_limit: float | None
    to_ours: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """One optimizer at one size. ``left_out``: contender and why it wasn't timed."""

    optimizer: str
    settings: str
    size: Size
    dtype: str
    bytes_per_element: int
    measured: tuple[Measured, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def of(self, name: str) -> Measured | None:
        """The contender of this name, if it was timed."""
        return next((each for each in self.measured if each.name == name), None)

    def as_json(self) -> dict[str, Any]:
        """Plain data that ``json.dumps`` takes."""
        return {
            "optimizer": self.optimizer,
            "settings": self.settings,
            "tensors": self.size.tensors,
            "elements": self.size.elements,
            "dtype": self.dtype,
            "bytes_per_element": self.bytes_per_element,
            "contenders": [
                {
                    "name": each.name,
                    "median_ms": each.median_ms,
                    "fastest_ms": each.fastest_ms,
                    "to_limit": each.to_limit,
                    "to_ours": each.to_ours,
                }
                for each in self.measured
            ],
            "left_out": dict(self.left_out),
        }


def measured(times: Mapping[str, HostArray], ours: str) -> tuple[Measured, ...]:
    """Medians and ratios of interleaved times (``[rounds, steps]``, seconds). ``ours``: whose time is 1."""
    rounds = {name: np.median(values, axis=1) for name, values in times.items()}

    def ratio(name: str, base: str) -> float | None:
        return float(np.median(rounds[name] / rounds[base])) if base in rounds else None

    return tuple(
        Measured(
            name=name,
            median_ms=float(1e3 * np.median(values)),
            fastest_ms=float(1e3 * values.min()),
            to_limit=ratio(name, LIMIT),
            to_ours=ratio(name, ours),
        )
        for name, values in times.items()
    )
