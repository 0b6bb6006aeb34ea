"""``piecewise``: a list of rates, and where each gives way to the next."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Piecewise(Stateless):
    """``rates[i]`` from iteration ``boundaries[i - 1]`` on. base_lr plays no part.

    ``linear``: on straight lines instead, through ``rates[i]`` at ``boundaries[i]``, and level outside.
    """

    boundaries: tuple[int, ...]
    rates: tuple[float, ...]
    linear: bool = False
    name: str = "piecewise"

    @classmethod
    def of(cls, given: Given) -> Piecewise:
        """Settings: ``boundaries`` and ``rates`` (one more), ``linear`` (false; with it as many)."""
        boundaries, rates = given.numbers("boundaries"), given.numbers("rates")
        linear = given.flag("linear", False)
        if any(not at.is_integer() or at < 0 for at in boundaries):
            given.refuse("boundaries must be iterations: whole numbers of at least 0")
        if any(b <= a for a, b in pairwise(boundaries)):
            given.refuse("boundaries must rise from one to the next")
        if any(rate < 0 for rate in rates):
            given.refuse("rates must be at least 0")
        wanted = len(boundaries) + (not linear)
        if len(rates) != wanted:
            given.refuse(f"{len(boundaries)} boundaries go with {wanted} rates, not {len(rates)}")
        return cls(tuple(map(int, boundaries)), rates, linear)

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        behind = bisect_right(self.boundaries, iteration)
        if not self.linear:
            return self.rates[behind]
        if behind == 0:
            return self.rates[0]
        if behind == len(self.boundaries):
            return self.rates[-1]
        start, end = self.boundaries[behind - 1 : behind + 1]
        low, high = self.rates[behind - 1 : behind + 1]
        return low + (high - low) * ((iteration - start) / (end - start))
