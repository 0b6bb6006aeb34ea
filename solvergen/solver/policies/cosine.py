"""``cosine``: down half a wave, once or with restarts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given

Cycle = tuple[int, int, int]
"""Which one it is, its first iteration, and how many it has."""


@dataclass(frozen=True)
class Cosine(Stateless):
    """``end + (base - end)*(1 + cos(pi*share))/2`` with the share of the cycle that is done.

    Without restarts the rate stays at ``end`` after the only cycle. With them each cycle is ``lengthen``
    times as long as the one before, and begins at ``shrink`` times its rate.
    """

    base: float
    end: float
    length: int
    restarts: bool = False
    lengthen: int = 1
    shrink: float = 1.0
    name: str = "cosine"

    @classmethod
    def of(cls, given: Given) -> Cosine:
        """Settings: ``end_rate`` (0), ``restarts`` (false), ``iterations`` (of the first cycle; max_iter),
        ``lengthen`` (1), ``shrink`` (1)."""
        return cls(
            base=given.base,
            end=given.number("end_rate", 0.0, least=0.0),
            length=given.count("iterations", max(given.length, 1), least=1),
            restarts=given.flag("restarts", False),
            lengthen=given.count("lengthen", 1, least=1),
            shrink=given.number("shrink", 1.0, most=1.0, above=0.0),
        )

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        cycle, start, length = self._cycle(iteration)
        if iteration - start >= length:
            return self.end
        highest = self.base * self.shrink**cycle
        share = (iteration - start) / length
        return self.end + (highest - self.end) * (1.0 + math.cos(math.pi * share)) / 2.0

    def _cycle(self, iteration: int) -> Cycle:
        if not self.restarts or iteration < self.length:
            return 0, 0, self.length
        if self.lengthen == 1:
            cycle = iteration // self.length
            return cycle, cycle * self.length, self.length
        cycle, start, length = 0, 0, self.length
        while iteration >= start + length:
            cycle, start, length = cycle + 1, start + length, length * self.lengthen
        return cycle, start, length
