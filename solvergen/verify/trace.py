"""What a run leaves behind after each step, and where two runs first part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.verify.bits import differing, ulp_distance


@dataclass(frozen=True, eq=False)
class Moment:
    """All that can be seen of an optimizer at one time; step 0 is before the first step.

    ``outcome``: "made" at step 0, then "applied", "skipped" or "raised". By name of tensor:
    ``buffers``, its active array states and last "param", which follows from them, and "grad" if the step
    wrote it; ``scalars``, its scalar states; ``counts``, its ``t``. ``shared``: the states of the whole
    optimizer.
    """

    outcome: str
    buffers: Mapping[str, Mapping[str, HostArray]]
    scalars: Mapping[str, Mapping[str, float]]
    counts: Mapping[str, int]
    shared: Mapping[str, float] = field(default_factory=dict)


Trace = tuple[Moment, ...]


@dataclass(frozen=True)
class Difference:
    """The first place where a run isn't what it should be.

    ``buffer`` is "param", the name of a state, "t", or "outcome" (then ``expected`` and ``found`` are words).
    ``tensor`` is "" for an outcome and for a state of the whole optimizer. ``index`` is None unless the
    buffer has elements. ``ulps`` is None where a distance has no meaning. ``count`` of ``size`` elements of
    this buffer differ at this step.
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


def first_difference(
    expected: Trace, found: Trace, order: Mapping[str, int] | None = None
) -> Difference | None:
    """Where ``found`` first differs from ``expected``, steps first, then tensors, then buffers.

    ``order``: for each buffer the place of its last equation in the program. It is for rules with reductions,
    where a fault of one tensor soon is one of all: there the difference comes first that the program makes
    first, then tensors.
    """
    for step, (right, other) in enumerate(zip(expected, found, strict=True)):
        if right.outcome != other.outcome:
            return Difference(step, "", "outcome", None, right.outcome, other.outcome)
        differences = _differences(step, right, other)
        if order is None:
            first = next(differences, None)
        else:
            first = min(differences, key=lambda d: order.get(d.buffer, -1), default=None)
        if first is not None:
            return first
    return None


def _differences(step: int, right: Moment, other: Moment) -> Iterator[Difference]:
    """All that differs after one step: in what all tensors share, then tensor by tensor."""
    yield from _in_scalars(step, "", right.shared, other.shared)
    for tensor, buffers in right.buffers.items():
        if right.counts[tensor] != other.counts[tensor]:
            yield Difference(step, tensor, "t", None, right.counts[tensor], other.counts[tensor])
        yield from _in_scalars(step, tensor, right.scalars[tensor], other.scalars[tensor])
        yield from _in_arrays(step, tensor, buffers, other.buffers[tensor])


def _in_scalars(
    step: int, tensor: str, expected: Mapping[str, float], found: Mapping[str, float]
) -> Iterator[Difference]:
    yield from _in_presence(step, tensor, expected, found)
    for name in (name for name in expected if name in found):
        pair = np.float64(expected[name]), np.float64(found[name])
        if differing(np.array(pair[0]), np.array(pair[1])).size:
            yield Difference(step, tensor, name, None, float(pair[0]), float(pair[1]), ulp_distance(*pair))


def _in_presence(
    step: int, tensor: str, expected: Mapping[str, object], found: Mapping[str, object]
) -> Iterator[Difference]:
    for name in (*expected, *found):
        if (name in expected) != (name in found):
            words = ("exists", "doesn't exist") if name in expected else ("doesn't exist", "exists")
            yield Difference(step, tensor, name, None, *words)


def _in_arrays(
    step: int, tensor: str, expected: Mapping[str, HostArray], found: Mapping[str, HostArray]
) -> Iterator[Difference]:
    yield from _in_presence(step, tensor, expected, found)
    for name, right in expected.items():
        other = found.get(name)
        if other is None:
            continue
        if right.dtype != other.dtype or right.shape != other.shape:
            words = f"{right.dtype} {right.shape}", f"{other.dtype} {other.shape}"
            yield Difference(step, tensor, name, None, *words)
            continue
        places = differing(right, other)
        if places.size:
            index = tuple(int(i) for i in np.unravel_index(int(places[0]), right.shape))
            yield Difference(
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
