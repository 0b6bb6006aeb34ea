"""What wraps an update: clipping, accumulation, decay, bounds, averages."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.runtime.optimizer import Optimizer


@dataclass(frozen=True)
class Wrappers:
    """What wraps an update."""


class WrappedOptimizer(Optimizer):
    """An optimizer whose update is wrapped."""
