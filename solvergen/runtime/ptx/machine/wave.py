"""Blocks that run at the same time: their shared and local memory, and the barriers of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.access import COPIES
from solvergen.runtime.ptx.machine.bundle import Bundle
from solvergen.runtime.ptx.machine.clock import WARP, Clock
from solvergen.runtime.ptx.machine.faults import Shape, Violation
from solvergen.runtime.ptx.machine.memory import Memory
from solvergen.runtime.ptx.machine.program import Block, Program
from solvergen.runtime.ptx.machine.slots import Values
from solvergen.runtime.ptx.machine.specials import Threads

Watch = Callable[[Block, HostArray, Values], None]
"""Runs a block's steps itself and tells of each: the block, the numbers of the threads, their values."""


@dataclass(frozen=True, slots=True)
class Order:
    """In which order things happen where the language leaves it open.

    ``lanes``: how many threads run together, roughly. ``turns``: which warps of a block run first up to a
    barrier: (0, 1) even ones before odd, (1, 0) the other way; () all at the same time. ``backwards``: blocks
    and atomics from the last to the first.
    """

    lanes: int
    turns: tuple[int, ...] = ()
    backwards: bool = False


class TooLong(Exception):
    """More instructions were executed than a launch may."""

    def __init__(self, block: Block) -> None:
        self.block = block
        super().__init__()


class Wave:
    """Blocks that run at the same time. It stands at index 0 of every list of values (``slots``), where steps
    find memory and parameters.

    ``limit``: how many instructions all threads of a wave may execute together.
    """

    def __init__(
        self,
        program: Program,
        *,
        grid: Shape,
        block: Shape,
        blocks: HostArray,
        order: Order,
        parameters: HostArray,
        memories: dict[str, Memory],
        clock: Clock,
        limit: int,
        watch: Watch | None,
    ) -> None:
        self.parameters = parameters
        self.memories = memories
        self.clock = clock
        self.watch = watch
        self.whole_warps: tuple[HostArray, bool] | None = None
        """Marks of threads, and whether these are whole warps in order: those that were asked for last."""
        clock.begin(len(blocks))
        self._left = limit
        self._threads = block.count
        inner = np.tile(np.arange(block.count), len(blocks))
        number = np.repeat(blocks, block.count)
        which = np.repeat(np.arange(len(blocks)), block.count)
        self.bundles = []
        for turn in order.turns or (None,):
            part = slice(None) if turn is None else np.flatnonzero(inner // WARP % 2 == turn)
            threads = Threads(grid, block, number[part], inner[part])
            if not len(threads.inner):
                continue
            copies = {
                COPIES["shared"]: which[part] if len(blocks) > 1 else np.zeros(1, np.int64),
                COPIES["local"]: np.arange(len(inner))[part],
            }
            numbers = threads.blocks * block.count + threads.inner
            self.bundles.append(Bundle(program, self, threads, numbers, copies))

    def run(self) -> None:
        """Run all threads to their end. Raises ThreadViolation, TooLong."""
        while True:
            for bundle in self.bundles:
                try:
                    bundle.run()
                except Violation as violation:
                    raise ThreadViolation(violation, int(bundle.numbers[violation.position])) from violation
            if not any(bundle.waiting for bundle in self.bundles):
                return
            self._meet()
            for bundle in self.bundles:
                bundle.go_on()

    def spend(self, instructions: int, block: Block) -> None:
        """Count instructions. Raises TooLong."""
        self._left -= instructions
        if self._left < 0:
            raise TooLong(block)

    def _meet(self) -> None:
        """Barriers: all threads of a block wait at the same one, or none do."""
        numbers, targets, instructions = [], [], {}
        for bundle in self.bundles:
            for lanes, meet in bundle.waiting:
                these = bundle.numbers[bundle.lanes(lanes)]
                numbers.append(these)
                targets.append(np.full(len(these), meet.target))
                instructions[meet.target] = meet.instruction
        who, where = np.concatenate(numbers), np.concatenate(targets)
        order = np.argsort(who, kind="stable")
        who, where = who[order], where[order]
        blocks, begins, counts = np.unique(who // self._threads, return_index=True, return_counts=True)
        same = np.minimum.reduceat(where, begins) == np.maximum.reduceat(where, begins)
        wrong = np.flatnonzero((counts != self._threads) | ~same)
        if wrong.size:
            first = wrong[0]
            inside = slice(begins[first], begins[first] + counts[first])
            instruction = instructions[int(where[begins[first]])]
            here, elsewhere = who[inside], where[inside] != where[begins[first]]
            if elsewhere.any():
                other = int(here[elsewhere.argmax()])
                line = instructions[int(where[inside][elsewhere.argmax()])].place.line
                why = f"waits at another barrier (PTX line {line})"
            else:
                absent = np.setdiff1d(np.arange(self._threads), here % self._threads)
                other = int(blocks[first]) * self._threads + int(absent[0])
                why = "has ended"
            count = int((~elsewhere).sum())
            message = (
                f"waits at a barrier that only {count} of its block's {self._threads} threads reach: "
                f"{{other}} {why}"
            )
            raise ThreadViolation(Violation(instruction, 0, message, other=other), int(here[0]))
        self.clock.block_barrier(blocks)


class ThreadViolation(Exception):
    """A violation, and the number in the grid of the thread whose it is."""

    def __init__(self, violation: Violation, thread: int) -> None:
        self.violation = violation
        self.thread = thread
        super().__init__()
