"""The rates of a whole run, at as many iterations as show what they do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from solvergen.solver.policies.base import Policy
from solvergen.solver.policies.multistep import MultiStep
from solvergen.solver.policies.piecewise import Piecewise
from solvergen.solver.policies.step import Step
from solvergen.solver.policies.warmup import WarmUp

_MOST_CORNERS = 10_000


@dataclass(frozen=True)
class Schedule:
    """``points`` are pairs of an iteration and its rate; ``constant`` if the rate stays between two."""

    points: tuple[tuple[int, float], ...]
    constant: bool
    notices: tuple[str, ...]


def schedule(policy: Policy, length: int, *, samples: int, every: int | None = None) -> Schedule:
    """The rates in ``length`` iterations: wherever they jump, and at about ``samples`` iterations between
    if they don't stay; with ``every`` at its multiples instead. Nothing is measured meanwhile."""
    corners = sorted({at for at in _corners(policy, length) if 0 <= at < length})
    inside = set(_evenly(length, samples)) if every is None else set(range(0, max(length, 1), every))
    constant = _stays(policy)
    shown = set(corners) | {0, max(length - 1, 0)} if constant and every is None else inside | set(corners)
    if every is not None:
        shown = inside
    state = policy.initial()
    points: list[tuple[int, float]] = []
    notices: dict[str, None] = {}
    for at in sorted(shown | inside | set(corners)):
        rate, state = policy.rate(at, state)
        if at in shown:
            points.append((at, rate))
        notice = policy.notice(at)
        if notice is not None:
            notices[notice] = None
    return Schedule(tuple(points), constant, tuple(notices))


def _evenly(length: int, samples: int) -> Iterable[int]:
    if length <= samples:
        return range(max(length, 1))
    return (round(i * (length - 1) / (samples - 1)) for i in range(samples))


def _stays(policy: Policy) -> bool:
    """Whether the rate is the same from one corner to the next."""
    if isinstance(policy, WarmUp):
        return False
    if isinstance(policy, Piecewise):
        return not policy.linear
    return isinstance(policy, (Step, MultiStep)) or policy.name in ("fixed", "constant", "plateau")


def _corners(policy: Policy, length: int) -> Iterable[int]:
    """Iterations at which the rate jumps or bends, those that there are of them within reason."""
    if isinstance(policy, WarmUp):
        shift = policy.length if policy.shifted else 0
        return (policy.length, *(at + shift for at in _corners(policy.policy, length)))
    if isinstance(policy, Step):
        return range(0, min(length, policy.stepsize * _MOST_CORNERS), policy.stepsize)
    if isinstance(policy, MultiStep):
        rising = list(policy.stepvalues) == sorted(set(policy.stepvalues))
        late = 1 if rising else len(policy.stepvalues)
        return (max(at, 0) + i for at in policy.stepvalues for i in range(late))
    if isinstance(policy, Piecewise):
        return policy.boundaries
    return ()
