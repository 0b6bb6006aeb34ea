"""Address ranges, and whether others meet them: what may be overwritten while a gradient is read."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from solvergen.runtime.arrays import HostArray

T = TypeVar("T")


def overlapping(spans: Iterable[tuple[int, int, T]]) -> tuple[T, T] | None:
    """Two whose ranges ``[start, end)`` share a byte, the one that begins first in memory before the other;
    None if there are none. Ranges are given with whose they are."""
    in_order = sorted((s for s in spans if s[0] < s[1]), key=lambda s: s[:2])
    for (_, end, one), (start, _, other) in pairwise(in_order):
        if start < end:
            return one, other
    return None


class Spans:
    """Address ranges that don't overlap one another, to be asked whether other ranges meet them.

    ``starts`` and ``ends`` (int64) have the ranges that aren't empty, ascending: since none overlaps
    another, only the last that begins before a range's end can meet it.
    """

    def __init__(self, spans: Sequence[tuple[int, int]]) -> None:
        """``spans``: ``[start, end)`` in bytes, in any order; empty ones meet nothing."""
        used = [i for i, (start, end) in enumerate(spans) if start != end]
        order = sorted(used, key=lambda i: spans[i][0])
        self._positions = order
        self._starts = [spans[i][0] for i in order]
        self.starts: HostArray = np.array(self._starts, np.int64)
        self.ends: HostArray = np.array([spans[i][1] for i in order], np.int64)

    @staticmethod
    def over(arrays: Sequence[Any], span_of: Callable[[Any], tuple[int, int]]) -> Spans:
        """The memory of ``arrays``; ``span_of`` is the backend's."""
        return Spans([span_of(array) for array in arrays])

    def met_by(self, start: int, end: int) -> int | None:
        """Which of the ranges, by its place among those given, shares a byte with ``[start, end)``."""
        nearest = bisect_left(self._starts, end) - 1
        if start == end or nearest < 0 or self.ends[nearest] <= start:
            return None
        return self._positions[nearest]

    def meet(self, starts: HostArray, sizes: HostArray) -> HostArray:
        """For each of the ranges that begin at ``starts`` and are ``sizes`` bytes long, whether it shares a
        byte with any of these."""
        if not len(self.starts):
            return np.zeros(len(starts), np.bool_)
        nearest = np.searchsorted(self.starts, starts + sizes, side="left") - 1
        meets: HostArray = (nearest >= 0) & (self.ends[np.maximum(nearest, 0)] > starts) & (sizes > 0)
        return meets
