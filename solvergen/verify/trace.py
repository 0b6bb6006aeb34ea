"""What a run leaves behind after each step, and where two runs first part."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.verify.bits import differing, ulp_distance


@dataclass(frozen=True, eq=False)
class Moment:
    """All that can be seen of an optimizer at one time; step 0 is before the first step.

    ``outcome``: "made" at step 0, then "applied", "skipped" or "raised". By name of tensor:
    ``buffers``, its active array states and last "param", which follows from them; ``scalars``, its
    scalar states; ``counts``, its ``t``.
    """

    outcome: str
    buffers: Mapping[str, Mapping[str, HostArray]]
    scalars: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, int]


Trace = tuple[Moment, ...]


@dataclass(frozen=True)
class Difference:
    """The first place where a run isn't what it should be.

    ``buffer`` is "param", the name of a state, "t", or "outcome" (then ``expected`` and ``found`` are
    words). ``index`` is None unless the buffer has elements. ``ulps`` is None where a distance has no
    meaning. ``count`` of ``size`` elements of this buffer differ at this step.
    """

    step: int
    tensor: str
    buffer: str
    index: tuple[int, ...] | None
    expected: Any
    found: Any
    ulps: int | None = None
    count: int = 1
    size: int = 1


def first_difference(expected: Trace, found: Trace) -> Difference | None:
    """Where ``found`` first differs from ``expected``, steps first, then tensors, then buffers."""
    for step, (right, other) in enumerate(zip(expected, found, strict=True)):
        if right.outcome != other.outcome:
            return Difference(step, "", "outcome", None, right.outcome, other.outcome)
        for tensor, buffers in right.buffers.items():
            if right.counts[tensor] != other.counts[tensor]:
                return Difference(step, tensor, "t", None, right.counts[tensor], other.counts[tensor])
            found_here = (
                _in_scalars(step, tensor, right.scalars[tensor], other.scalars[tensor])
                or _in_presence(step, tensor, buffers, other.buffers[tensor])
                or _in_arrays(step, tensor, buffers, other.buffers[tensor])
            )
            if found_here is not None:
                return found_here
    return None


def _in_scalars(
    step: int, tensor: str, expected: Mapping[str, float], found: Mapping[str, float]
) -> Difference | None:
    presence = _in_presence(step, tensor, expected, found)
    if presence is not None:
        return presence
    for name, value in expected.items():
        pair = np.float64(value), np.float64(found[name])
        if differing(np.array(pair[0]), np.array(pair[1])).size:
            return Difference(step, tensor, name, None, float(pair[0]), float(pair[1]), ulp_distance(*pair))
    return None


def _in_presence(
    step: int, tensor: str, expected: Mapping[str, object], found: Mapping[str, object]
) -> Difference | None:
    for name in (*expected, *found):
        if (name in expected) != (name in found):
            words = ("exists", "doesn't exist") if name in expected else ("doesn't exist", "exists")
            return Difference(step, tensor, name, None, *words)
    return None


def _in_arrays(
    step: int, tensor: str, expected: Mapping[str, HostArray], found: Mapping[str, HostArray]
) -> Difference | None:
    for name, right in expected.items():
        other = found[name]
        if right.dtype != other.dtype or right.shape != other.shape:
            words = f"{right.dtype} {right.shape}", f"{other.dtype} {other.shape}"
            return Difference(step, tensor, name, None, *words)
        places = differing(right, other)
        if places.size:
            index = tuple(int(i) for i in np.unravel_index(int(places[0]), right.shape))
            return Difference(
                step,
                tensor,
                name,
                index,
                right[index],
                other[index],
                ulp_distance(right[index], other[index]),
                int(places.size),
                right.size,
            )
    return None
