"""``one_cycle``: up to base_lr and down again, far below where it began."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given

Anneal = Literal["cosine", "linear"]


@dataclass(frozen=True)
class OneCycle(Stateless):
    """From ``first`` to ``peak`` in the first ``rise`` of the iterations, and then to ``last``.

    The peak is at iteration ``rise*length - 1`` and the last rate at ``length - 1``, as torch's OneCycleLR
    has it with its two phases; past the end the rate stays. Momentum isn't cycled.
    """

    first: float
    peak: float
    last: float
    length: int
    rise: float
    anneal: Anneal
    name: str = "one_cycle"

    @classmethod
    def of(cls, given: Given) -> OneCycle:
        """Settings: ``rise`` (0.3), ``first_divisor`` (25), ``last_divisor`` (10000, of the first rate),
        ``anneal`` (``"cosine"``, or ``"linear"``), ``iterations`` (max_iter)."""
        first = given.base / given.number("first_divisor", 25.0, least=1.0)
        anneal = given.word("anneal", "cosine", ("cosine", "linear"))
        return cls(
            first=first,
            peak=given.base,
            last=first / given.number("last_divisor", 1e4, least=1.0),
            length=given.count("iterations", max(given.length, 1), least=1),
            rise=given.number("rise", 0.3, least=0.0, most=1.0),
            anneal="cosine" if anneal == "cosine" else "linear",
        )

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        top, end = self.rise * self.length - 1.0, self.length - 1.0
        at = min(float(iteration), end)
        if at <= top:
            return self._between(self.first, self.peak, at / top if top > 0.0 else 1.0)
        return self._between(self.peak, self.last, (at - top) / (end - top) if end > top else 1.0)

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal == "linear":
            return start + (end - start) * share
        return end + (start - end) / 2.0 * (1.0 + math.cos(math.pi * share))
