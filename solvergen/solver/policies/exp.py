"""Caffe's ``exp``: base_lr times gamma to the iteration."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, power, rounded
from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Exponential(Stateless):
    """The rate shrinks by the factor ``gamma`` in every iteration, and in the end to 0."""

    base: float
    gamma: float
    type_: NetType = "float32"
    name: str = "exp"

    @classmethod
    def of(cls, given: Given) -> Exponential:
        """From Caffe's fields."""
        return cls(given.base, given.gamma, given.type_)

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        return rounded(self.base * power(self.gamma, iteration), self.type_)
