"""What became of a mutant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from solvergen.verify.mutations.mutant import Mutant

Verdict = Literal["noticed", "survived", "same code", "refused"]
"""``noticed``: a drawn run differs from the rule, raises, crashes or never ends. ``survived``: none does.
``same code``: the compiler makes of it what it makes of the right text, for all dtypes and options.
``refused``: it doesn't compile, so nobody needs to notice."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``how`` it was noticed, or why not, in one line. ``examples``: how many were run until then."""

    mutant: Mutant
    verdict: Verdict
    how: str
    examples: int = 0
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Outcome:
        """What ``as_json`` gave."""
        return cls(**{**data, "mutant": Mutant(**data["mutant"])})
