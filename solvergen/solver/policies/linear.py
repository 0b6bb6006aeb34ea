"""``linear``: from base_lr straight to another rate."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Linear(Stateless):
    """``base`` at iteration 0, ``end`` from iteration ``length`` on, and on a straight line between."""

    base: float
    end: float
    length: int
    name: str = "linear"

    @classmethod
    def of(cls, given: Given) -> Linear:
        """Settings: ``end_rate`` (0), ``iterations`` (max_iter)."""
        return cls(
            given.base, given.number("end_rate", 0.0, least=0.0), given.count("iterations", given.length)
        )

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        if iteration >= self.length:
            return self.end
        return self.base + (self.end - self.base) * (iteration / self.length)
