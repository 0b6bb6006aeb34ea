"""Where control goes: basic blocks, how they end, and which registers matter where.

A guarded instruction other than a branch stands in a block of its own that the other threads go around, so
guards are nothing but branches. Blocks keep the order of the text: the machine runs the first one at which
any thread is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from solvergen.runtime.ptx.machine.slots import error
from solvergen.runtime.ptx.module import Instruction, Integer, Kernel, Place, Symbol

_NOTHING = Instruction("", (), (), None, Place(0, ""))

BRANCH = "bra"
LEAVE = ("ret", "exit")
BARRIERS = ("bar", "barrier")


@dataclass(frozen=True, slots=True)
class Next:
    """All threads go on to block ``target``."""

    target: int


@dataclass(frozen=True, slots=True)
class Choose:
    """Threads whose predicate (not, if ``negated``) holds go to ``taken``, others to ``other``."""

    predicate: int
    negated: bool
    taken: int
    other: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Leave:
    """The threads are done."""


@dataclass(frozen=True, slots=True)
class Meet:
    """The threads wait for all of their block, then go on to ``target``."""

    target: int
    instruction: Instruction


@dataclass(frozen=True, slots=True)
class Stop:
    """No thread may come here: a trap, or the end of the text."""

    instruction: Instruction
    why: str


End = Next | Choose | Leave | Meet | Stop


@dataclass(frozen=True, slots=True)
class Stretch:
    """A basic block: instructions ``begin`` to ``end``, of which the last may be what ``how`` is about."""

    begin: int
    end: int
    how: End


def is_barrier(instruction: Instruction) -> bool:
    """Whether all threads of a block wait here for one another."""
    return instruction.opcode in BARRIERS and "warp" not in instruction.modifiers


def stretches(kernel: Kernel, alone: Sequence[bool]) -> tuple[Stretch, ...]:
    """The basic blocks of a kernel, in the order of the text. ``alone``: instructions that need a block of
    their own.

    Raises:
        PtxError: a branch to nowhere, a barrier of a kind that isn't known.
    """
    instructions = kernel.instructions
    count = len(instructions)
    guarded = [i.guard is not None and i.opcode != BRANCH for i in instructions]
    begins = {0, *kernel.labels.values()}
    for index, instruction in enumerate(instructions):
        if instruction.opcode in (BRANCH, *LEAVE, "trap") or is_barrier(instruction):
            begins.add(index + 1)
        if alone[index] or guarded[index]:
            begins |= {index, index + 1}
    # Where a guarded instruction stands there are two blocks: an empty one that chooses, and its own.
    entries = [
        (index, part)
        for index in sorted(begins)
        for part in ((0, 1) if index < count and guarded[index] else (0,))
    ]
    number = {entry: place for place, entry in enumerate(entries) if entry[0] < count}
    outside = len(number)  # the end of the text is a block too, which nothing may reach

    def at(index: int) -> int:
        return number.get((index, 0), outside)

    ends = dict(zip(sorted(begins), [*sorted(begins)[1:], count], strict=True))
    found = []
    for index, part in number:
        if guarded[index] and part == 0:
            guard = instructions[index].guard
            assert guard is not None
            inside, around = number[index, 1], at(index + 1)
            choice = Choose(1 + guard.register.slot, guard.negated, inside, around, instructions[index])
            found.append(Stretch(index, index, choice))
        else:
            found.append(Stretch(index, ends[index], _end(kernel, ends[index], at)))
    last = instructions[-1] if instructions else _NOTHING
    return (*found, Stretch(count, count, Stop(last, "runs off the end of the kernel")))


def _end(kernel: Kernel, end: int, at: Callable[[int], int]) -> End:
    """How the block ends whose last instruction is before ``end``."""
    last = kernel.instructions[end - 1]
    if last.opcode == BRANCH:
        return _branch(last, at(end), kernel, at)
    if last.opcode in LEAVE:
        if last.modifiers not in ((), ("uni",)) or last.operands:
            raise error(last, f"the interpreter doesn't know this form of {last.name}")
        return Leave()
    if last.opcode == "trap":
        return Stop(last, "executes trap")
    if is_barrier(last):
        _check_barrier(last)
        return Meet(at(end), last)
    return Next(at(end))


def _branch(instruction: Instruction, following: int, kernel: Kernel, at: Callable[[int], int]) -> End:
    operands = instruction.operands
    if (
        instruction.modifiers not in ((), ("uni",))
        or len(operands) != 1
        or not isinstance(operands[0], Symbol)
    ):
        raise error(instruction, f"the interpreter doesn't know this form of {instruction.name}")
    label = operands[0].name
    if label not in kernel.labels:
        raise error(instruction, f"there is no label {label}")
    target = at(kernel.labels[label])
    if instruction.guard is None:
        return Next(target)
    guard = instruction.guard
    return Choose(1 + guard.register.slot, guard.negated, target, following, instruction)


def _check_barrier(instruction: Instruction) -> None:
    """``bar.sync`` and ``barrier.sync`` of a whole block (PTX ISA, "bar, barrier")."""
    known = {("sync",), ("cta", "sync"), ("sync", "aligned"), ("cta", "sync", "aligned")}
    numbered = len(instruction.operands) == 1 and isinstance(instruction.operands[0], Integer)
    if instruction.modifiers not in known or not numbered:
        raise error(instruction, f"the interpreter doesn't know this form of {instruction.name}")
