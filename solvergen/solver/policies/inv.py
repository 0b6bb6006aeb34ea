"""Caffe's ``inv``: base_lr times a negative power of 1 + gamma times the iteration."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, power, rounded, single
from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Inverse(Stateless):
    """``base*(1 + gamma*iteration)**(-power)``. The product is a float in Caffe, whatever the net's type."""

    base: float
    gamma: float
    power: float
    type_: NetType = "float32"
    name: str = "inv"

    @classmethod
    def of(cls, given: Given) -> Inverse:
        """From Caffe's fields."""
        return cls(given.base, given.gamma, given.params.power, given.type_)

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        grown = rounded(1.0 + single(self.gamma * single(iteration)), self.type_)
        return rounded(self.base * power(grown, -self.power), self.type_)
