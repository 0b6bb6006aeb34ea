"""Caffe's ``step``: base_lr times gamma to the number of whole stepsizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, power, rounded
from solvergen.solver.policies.base import PolicyState
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Step:
    """The rate drops every ``stepsize`` iterations. The step is in the state, and computed anew each time."""

    base: float
    gamma: float
    stepsize: int
    type_: NetType = "float32"
    name: str = "step"

    @classmethod
    def of(cls, given: Given) -> Step:
        """From Caffe's fields."""
        return cls(given.base, given.gamma, given.stepsize, given.type_)

    def initial(self) -> PolicyState:
        """Step 0."""
        return {"current_step": 0}

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The rate, and its step."""
        step = iteration // self.stepsize
        return rounded(self.base * power(self.gamma, step), self.type_), {"current_step": step}

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """The state as it is."""
        return state

    def notice(self, iteration: int) -> str | None:
        """Nothing."""
        return None
