"""One instruction, ready to run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solvergen.runtime.ptx.machine.slots import Values
from solvergen.runtime.ptx.module import Instruction


def nothing(values: Values) -> None:
    """What an instruction does that only says where to go, or whose effect can't be seen here."""


@dataclass(frozen=True, slots=True)
class Step:
    """What an instruction does to a list of values, and which of its places it reads and writes."""

    instruction: Instruction
    run: Callable[[Values], None]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
