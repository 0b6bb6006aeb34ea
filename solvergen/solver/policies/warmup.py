"""Warming up: a ramp before, or over, the first rates of any policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from solvergen.solver.policies.base import Policy, PolicyState


@dataclass(frozen=True)
class WarmUp:
    """The rates of ``policy`` times a factor that rises from ``start`` to 1 in ``length`` iterations.

    The policy goes by the same iterations; or, if it is ``shifted``, it begins when the ramp ends and its
    first rate is what the ramp leads to.
    """

    policy: Policy
    length: int
    start: float = 0.0
    shifted: bool = False

    @property
    def name(self) -> str:
        """The policy's."""
        return self.policy.name

    def initial(self) -> PolicyState:
        """The policy's."""
        return self.policy.initial()

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The policy's rate, times the factor while it warms up."""
        rate, after = self.policy.rate(self._inner(iteration), state)
        if iteration < self.length:
            rate *= self.start + (1.0 - self.start) * (iteration / self.length)
        return rate, after

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """The policy's; what is measured while it warms up doesn't count."""
        if iteration < self.length:
            return state
        return self.policy.observed(self._inner(iteration), metrics, state)

    def notice(self, iteration: int) -> str | None:
        """The policy's."""
        return self.policy.notice(self._inner(iteration))

    def _inner(self, iteration: int) -> int:
        return max(iteration - self.length, 0) if self.shifted else iteration
