"""Caffe's ``poly``: base_lr times a power of the share of iterations that are left."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, power, rounded
from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Polynomial(Stateless):
    """``base*(1 - iteration/max_iter)**power``, and 0 past max_iter (Caffe: NaN, or below 0)."""

    base: float
    power: float
    length: int
    type_: NetType = "float32"
    name: str = "poly"

    @classmethod
    def of(cls, given: Given) -> Polynomial:
        """From Caffe's fields."""
        return cls(given.base, given.params.power, given.length, given.type_)

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        if self._past(iteration):
            return 0.0
        ratio = rounded(
            rounded(float(iteration), self.type_) / rounded(float(self.length), self.type_), self.type_
        )
        return rounded(self.base * power(rounded(1.0 - ratio, self.type_), self.power), self.type_)

    def notice(self, iteration: int) -> str | None:
        """That the rate is 0, past the end."""
        if not self._past(iteration):
            return None
        return (
            f"lr_policy 'poly' ends at max_iter ({self.length}): past it the rate is 0, where Caffe's is "
            "NaN or has the wrong sign; give a larger max_iter to go on"
        )

    def _past(self, iteration: int) -> bool:
        return iteration > self.length or self.length == 0
