"""Watching a kernel run, one instruction after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.program import Block
from solvergen.runtime.ptx.machine.slots import Values
from solvergen.runtime.ptx.machine.wave import Watch
from solvergen.runtime.ptx.module import Instruction, Place


@dataclass(frozen=True, slots=True)
class Event:
    """An instruction that some threads have executed.

    ``block`` and ``thread``: where each of them is, as numbers in the grid and in its block. ``results``:
    what it wrote, by the register's name: arrays with an entry for each of them, in the type of the result.
    """

    kernel: str
    instruction: Instruction
    block: HostArray
    thread: HostArray
    results: Mapping[str, HostArray]

    @property
    def place(self) -> Place:
        """Where it stands, in the PTX and in the CUDA text."""
        return self.instruction.place

    def __str__(self) -> str:
        return f"{self.place.line}: {self.place.text.strip()}"


Observer = Callable[[Event], None]


def watching(observe: Observer, kernel: str, names: list[str], threads_per_block: int) -> Watch:
    """Runs blocks of instructions, and tells ``observe`` of each instruction once it is done."""

    def watch(block: Block, threads: HostArray, values: Values) -> None:
        blocks, inner = np.divmod(threads, threads_per_block)
        for step in block.steps:
            step.run(values)
            results = {names[slot]: np.broadcast_to(values[slot], len(threads)) for slot in step.writes}
            observe(Event(kernel, step.instruction, blocks, inner, results))

    return watch
