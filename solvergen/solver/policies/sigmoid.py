"""Caffe's ``sigmoid``: base_lr times a sigmoid around stepsize."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, exponential, rounded
from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Sigmoid(Stateless):
    """``base/(1 + exp(-gamma*(iteration - stepsize)))``: with gamma above 0 the rate rises to base."""

    base: float
    gamma: float
    stepsize: int
    type_: NetType = "float32"
    name: str = "sigmoid"

    @classmethod
    def of(cls, given: Given) -> Sigmoid:
        """From Caffe's fields."""
        return cls(given.base, given.gamma, given.stepsize, given.type_)

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        type_ = self.type_
        distance = rounded(rounded(float(iteration), type_) - rounded(float(self.stepsize), type_), type_)
        exponent = rounded(-self.gamma * distance, type_)
        return rounded(self.base * (1.0 / (1.0 + exponential(exponent))), type_)
