"""What an access to memory is to others: which kinds there are, and which of them race."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvergen.runtime.ptx.module import Instruction

Kind = Literal["read", "constant read", "write", "strong read", "strong write", "atomic"]
"""What an access is to others. Strong ones are volatile, relaxed, acquire and release; a constant one
(``.nc``) is of memory that nobody writes during the launch."""

RACES: dict[Kind, tuple[Kind, ...]] = {
    "read": ("write", "strong write", "atomic"),
    "constant read": ("write", "strong write", "atomic"),
    "write": ("read", "constant read", "write", "strong read", "strong write", "atomic"),
    "strong read": ("write",),
    "strong write": ("read", "constant read", "write"),
    "atomic": ("read", "constant read", "write"),
}
"""What each kind of access races with: strong ones and atomics not with one another."""

VERBS: dict[Kind, str] = {
    "read": "reads",
    "constant read": "reads",
    "write": "writes",
    "strong read": "reads",
    "strong write": "writes",
    "atomic": "atomically updates",
}
DONE: dict[Kind, str] = {
    "read": "read",
    "constant read": "read as constant",
    "write": "wrote",
    "strong read": "read",
    "strong write": "wrote",
    "atomic": "atomically updated",
}
READS: frozenset[Kind] = frozenset({"read", "constant read", "strong read", "atomic"})
"""Accesses that need something to be there."""

WRITES: frozenset[Kind] = frozenset({"write", "strong write", "atomic"})
"""Accesses that leave something there."""

RACE = "which {{other}} {} with no barrier between them"
"""Said of a race, with what the other thread did."""

CHANGED = "which {{other}} {}, although what .nc reads must not change during a launch"
"""Said of a constant that isn't one."""


@dataclass(frozen=True, slots=True)
class Access:
    """What an instruction does to memory: ``count`` values of ``dtype`` at each address."""

    instruction: Instruction
    dtype: np.dtype[Any]
    count: int
    kind: Kind

    @property
    def nbytes(self) -> int:
        """Bytes that each thread accesses."""
        return self.count * self.dtype.itemsize
