"""What a learning-rate policy is: a rate for every iteration, and a state that goes into snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

PolicyState = Mapping[str, "int | float"]
"""Names to numbers, as JSON can hold them. Empty where the rate follows from the iteration alone."""

NO_STATE: PolicyState = MappingProxyType({})


class Policy(Protocol):
    """A rule for the learning rate. Its methods change nothing: they say what the next state is.

    Iterations count from 0, as Caffe's do: it is the number of updates before this one.
    """

    @property
    def name(self) -> str:
        """What ``lr_policy`` says."""
        ...

    def initial(self) -> PolicyState:
        """The state before the first iteration."""
        ...

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The rate of the update at ``iteration``, and the state once it has been used.

        Who only wants to know the rate leaves the new state alone.
        """
        ...

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """The state once these have been measured: losses and outputs of nets, by name."""
        ...

    def notice(self, iteration: int) -> str | None:
        """What users should be told about the rate at ``iteration``; None: nothing."""
        ...


class Stateless:
    """A policy whose rate follows from the iteration: subclasses give ``at``."""

    def at(self, iteration: int) -> float:
        """The rate at ``iteration``."""
        raise NotImplementedError

    def initial(self) -> PolicyState:
        """Nothing."""
        return NO_STATE

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The rate; the state stays as it is."""
        return self.at(iteration), state

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """The state as it is."""
        return state

    def notice(self, iteration: int) -> str | None:
        """Nothing."""
        return None
