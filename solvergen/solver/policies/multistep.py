"""Caffe's ``multistep``: base_lr times gamma to the number of stepvalues that are behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvergen.solver.policies.arithmetic import NetType, power, rounded
from solvergen.solver.policies.base import PolicyState
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class MultiStep:
    """The rate drops at each of ``stepvalues``, by one step an iteration at most.

    So it is in Caffe, and it shows where a state that is resumed is more than one step behind, or where two
    values are the same: the drops come in iterations one after the other.
    """

    base: float
    gamma: float
    stepvalues: tuple[int, ...]
    type_: NetType = "float32"
    name: str = "multistep"

    @classmethod
    def of(cls, given: Given) -> MultiStep:
        """From Caffe's fields."""
        return cls(given.base, given.gamma, given.params.stepvalue, given.type_)

    def initial(self) -> PolicyState:
        """Step 0."""
        return {"current_step": 0}

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The rate, and its step: the state's or the next."""
        step = int(state.get("current_step", 0))
        if step < len(self.stepvalues) and iteration >= self.stepvalues[step]:
            step += 1
        return rounded(self.base * power(self.gamma, step), self.type_), {"current_step": step}

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """The state as it is."""
        return state

    def notice(self, iteration: int) -> str | None:
        """Nothing."""
        return None
