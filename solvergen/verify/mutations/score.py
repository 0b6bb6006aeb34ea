"""Choosing mutants, and counting what became of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from solvergen.verify.mutations.mutant import KINDS, Mutant
from solvergen.verify.mutations.outcome import Outcome


def sample(mutants: Sequence[Mutant], count: int | None, seed: int = 0) -> list[Mutant]:
    """At most ``count`` mutants of each kind, chosen by ``seed``; all if it is None."""
    if count is None:
        return list(mutants)
    chosen = []
    for kind in KINDS:
        # A generator for each kind, so that a new mutant of one kind leaves the choice of others alone.
        several = [mutant for mutant in mutants if mutant.kind == kind]
        picked = random.Random(f"{seed}/{kind}").sample(range(len(several)), min(count, len(several)))
        chosen += [several[i] for i in sorted(picked)]
    return chosen


@dataclass(frozen=True)
class Score:
    """What became of mutants. ``equivalent`` survivors are known to compute the same."""

    outcomes: tuple[Outcome, ...]
    equivalent: tuple[Outcome, ...] = ()

    @classmethod
    def of(cls, outcomes: Iterable[Outcome], equivalent: Iterable[tuple[str, ...]] = ()) -> Score:
        """``equivalent``: keys of mutants that compute the same."""
        all_ = tuple(outcomes)
        known = frozenset(equivalent)
        return cls(all_, tuple(o for o in all_ if o.verdict == "survived" and o.mutant.key in known))

    @cached_property
    def survivors(self) -> tuple[Outcome, ...]:
        """Faults that nothing noticed."""
        known = {id(outcome) for outcome in self.equivalent}
        return tuple(o for o in self.outcomes if o.verdict == "survived" and id(o) not in known)

    @property
    def noticed(self) -> int:
        """How many were noticed."""
        return sum(outcome.verdict == "noticed" for outcome in self.outcomes)

    @property
    def share(self) -> float:
        """Those noticed, of those that are another program."""
        faults = self.noticed + len(self.survivors)
        return self.noticed / faults if faults else 1.0

    def rows(self) -> list[tuple[str, ...]]:
        """A table by kind: kind, noticed, survived, equivalent, same code, refused."""
        counts: Counter[tuple[str, str]] = Counter((o.mutant.kind, o.verdict) for o in self.outcomes)
        equal = Counter(outcome.mutant.kind for outcome in self.equivalent)
        table = []
        for kind in KINDS:
            if any(counts[kind, verdict] for verdict in ("noticed", "survived", "same code", "refused")):
                left = counts[kind, "survived"] - equal[kind]
                numbers = (counts[kind, "noticed"], left, equal[kind])
                others = (counts[kind, "same code"], counts[kind, "refused"])
                table.append((kind, *map(str, (*numbers, *others))))
        return table
