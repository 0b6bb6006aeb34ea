"""Which registers matter where: what a basic block reads before it writes it, and what is read after it.

Sets of places are the bits of integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from solvergen.runtime.ptx.machine.flow import Choose, End, Meet, Next
from solvergen.runtime.ptx.machine.slots import Slots
from solvergen.runtime.ptx.machine.step import Step
from solvergen.runtime.ptx.module import Instruction


@dataclass(frozen=True, slots=True)
class Needs:
    """See ``program.Block``."""

    gather: tuple[int, ...]
    scatter: tuple[int, ...]
    asked: tuple[tuple[int, Instruction], ...]
    given: tuple[int, ...]
    spent: tuple[int, ...]


def needs_of(blocks: Sequence[Sequence[Step]], ends: Sequence[End], slots: Slots) -> list[Needs]:
    """What each basic block needs and leaves."""
    varying = sum(1 << slot for slot in range(1, len(slots.template)) if slots.is_varying(slot))
    registers = varying & ~sum(1 << slot for slot in slots.specials.values())
    reads, writes = [], []
    for steps, end in zip(blocks, ends, strict=True):
        read = written = 0
        for step in steps:
            read |= _set(step.reads) & ~written
            written |= _set(step.writes)
        if isinstance(end, Choose):
            read |= 1 << end.predicate & ~written
        reads.append(read & varying)
        writes.append(written)
    after = _live_after(reads, writes, ends)
    before = _surely_written(writes, ends)
    doubtful = [read & registers & ~sure for read, sure in zip(reads, before, strict=True)]
    tracked = 0
    for doubt in doubtful:
        tracked |= doubt
    needs = []
    for steps, end, read, written, live, doubt in zip(
        blocks, ends, reads, writes, after, doubtful, strict=True
    ):
        asked = tuple((slot, _reader(steps, end, slot)) for slot in _bits(doubt))
        needs.append(
            Needs(
                gather=tuple(_bits(read)),
                scatter=tuple(_bits(written & live)),
                asked=asked,
                given=tuple(_bits(written & tracked)),
                spent=tuple(_bits(written & ~live)),
            )
        )
    return needs


def _reader(steps: Sequence[Step], end: End, slot: int) -> Instruction:
    """The first instruction of a block that reads a register."""
    for step in steps:
        if slot in step.reads:
            return step.instruction
    assert isinstance(end, Choose)
    return end.instruction


def _live_after(reads: list[int], writes: list[int], ends: Sequence[End]) -> list[int]:
    """For each block, what is read after it before it is written again."""
    after = [0] * len(ends)
    changed = True
    while changed:
        changed = False
        for place in reversed(range(len(ends))):
            live = 0
            for target in targets(ends[place]):
                live |= reads[target] | (after[target] & ~writes[target])
            if live != after[place]:
                after[place] = live
                changed = True
    return after


def _surely_written(writes: list[int], ends: Sequence[End]) -> list[int]:
    """For each block, what every thread that comes to it has written, whichever way it came."""
    everything = 0
    for written in writes:
        everything |= written
    before = [0, *([everything] * (len(ends) - 1))]
    changed = True
    while changed:
        changed = False
        for place, end in enumerate(ends):
            for target in targets(end):
                sure = before[target] & (before[place] | writes[place])
                if sure != before[target]:
                    before[target] = sure
                    changed = True
    return before


def targets(end: End) -> tuple[int, ...]:
    """The blocks to which threads may go from one that ends so."""
    if isinstance(end, Choose):
        return end.taken, end.other
    return (end.target,) if isinstance(end, Next | Meet) else ()


def _set(slots: Sequence[int]) -> int:
    found = 0
    for slot in slots:
        found |= 1 << slot
    return found


def _bits(found: int) -> Iterator[int]:
    while found:
        low = found & -found
        yield low.bit_length() - 1
        found ^= low
