"""Tensors that are at the same point of their lives.

Every tensor has a count of its updates, ``t``, and scalar states. Tensors of one group for which these
are equal form a cohort: the host program runs once for all of them. At first there is one cohort a
group; a step that leaves some tensors of a cohort alone splits it, and cohorts that have become equal
are merged when that happens.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np

from solvergen.runtime.arrays import HostArray


class Cohort:
    """Tensors (``members``, by position) of one group with equal ``t`` and scalar states.

    ``t`` is a Python int, which never loses count. ``scalars`` come in the definition's order.
    """

    __slots__ = ("group", "members", "scalars", "t")

    def __init__(self, group: int, t: int, scalars: tuple[float, ...], members: Sequence[int]) -> None:
        self.group = group
        self.t = t
        self.scalars = scalars
        self.members = tuple(members)


class Cohorts:
    """All cohorts of an optimizer: every tensor is in exactly one.

    ``version`` changes whenever tensors change their cohort, so that what was derived from the
    division can be kept until then.
    """

    def __init__(self, cohorts: Sequence[Cohort], count: int) -> None:
        self.version = 0
        self._count = count
        self._divide(cohorts)

    @property
    def all(self) -> tuple[Cohort, ...]:
        """Every cohort."""
        return self._cohorts

    def of(self, tensor: int) -> Cohort:
        """The cohort of a tensor."""
        return self._cohorts[int(self._index[tensor])]

    @property
    def largest_t(self) -> int:
        """The largest count of updates."""
        return max((cohort.t for cohort in self._cohorts), default=0)

    def select(self, members: Sequence[int] | None) -> tuple[tuple[Cohort, ...], HostArray]:
        """The cohorts of exactly these tensors (all, if None), and each tensor's place among them.

        The second has an int32 for every tensor of the optimizer; of tensors that aren't selected it
        means nothing. Splits cohorts where needed, which changes nothing that a user can see.
        """
        if members is None:
            return self._cohorts, self._index
        chosen = set(members)
        if any(0 < len(chosen.intersection(c.members)) < len(c.members) for c in self._cohorts):
            self._split(chosen)
        cohorts = tuple(c for c in self._cohorts if c.members[0] in chosen)
        place = {id(cohort): i for i, cohort in enumerate(cohorts)}
        places = np.array([place.get(id(c), 0) for c in self._cohorts], np.int32)
        return cohorts, places[self._index]

    def restore(self, cohorts: Sequence[Cohort]) -> None:
        """Replace everything, merging what is equal."""
        self._divide(_merged([(c, c.members, True) for c in cohorts]))

    def _split(self, chosen: set[int]) -> None:
        pieces = []
        for cohort in self._cohorts:
            pieces.append((cohort, [m for m in cohort.members if m in chosen], True))
            pieces.append((cohort, [m for m in cohort.members if m not in chosen], False))
        self._divide(_merged(pieces))

    def _divide(self, cohorts: Sequence[Cohort]) -> None:
        kept = tuple(c for c in cohorts if c.members)
        index = np.zeros(self._count, np.int32)
        for i, cohort in enumerate(kept):
            index[list(cohort.members)] = i
        # Side by side at the end: Ctrl-C is raised between function calls, so it finds all or nothing.
        self._cohorts = kept
        self._index = index
        self.version += 1


def advance(cohorts: Sequence[Cohort], scalars: Sequence[tuple[float, ...]]) -> Callable[[], None]:
    """Count an update of these cohorts and set their scalar states. Returns what takes that back."""
    before = [(cohort, cohort.t, cohort.scalars) for cohort in cohorts]
    for cohort, new in zip(cohorts, scalars, strict=True):
        cohort.t += 1
        cohort.scalars = new

    def undo() -> None:
        for cohort, t, old in before:
            cohort.t, cohort.scalars = t, old

    return undo


def _merged(pieces: Sequence[tuple[Cohort, Sequence[int], bool]]) -> list[Cohort]:
    """One cohort for each distinct (group, t, scalar states, side of the split)."""
    merged: dict[tuple[int, int, bytes, bool], tuple[Cohort, list[int]]] = {}
    for cohort, members, side in pieces:
        # The bits of the scalars, since 0.0 == -0.0 and NaN != NaN.
        bits = struct.pack(f"{len(cohort.scalars)}d", *cohort.scalars)
        merged.setdefault((cohort.group, cohort.t, bits, side), (cohort, []))[1].extend(members)
    return [Cohort(c.group, c.t, c.scalars, sorted(members)) for c, members in merged.values()]
