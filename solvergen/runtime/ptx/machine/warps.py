"""Instructions by which the threads of a warp exchange values: shuffles, votes, reductions.

Each names the lanes that take part by a mask, and waits until they are all there. So it stands alone in its
basic block; a bundle runs it for the groups that are complete, and it is a fault if a group never is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.operation import Form
from solvergen.runtime.ptx.machine.clock import WARP
from solvergen.runtime.ptx.machine.faults import Violation
from solvergen.runtime.ptx.machine.marks import thread_of
from solvergen.runtime.ptx.machine.slots import MINE, Read, Slots, Values, error, results_of
from solvergen.runtime.ptx.machine.step import Step
from solvergen.runtime.ptx.machine.values import reading
from solvergen.runtime.ptx.module import Instruction, Operand, Register, Sink
from solvergen.runtime.ptx.types import TYPES, Type

EVERYONE = (1 << WARP) - 1
"""The mask that names all lanes."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """An instruction at which lanes wait for one another. ``mask`` reads the lanes that each waits for."""

    step: Step
    mask: Read
    synchronizes: bool
    """Whether memory is ordered by it: by ``bar.warp.sync`` and no other."""


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that take part together: each has its warp (in the grid), its lane, and the mask of its group."""

    warp: HostArray
    lane: HostArray
    mask: HostArray


def group_of(values: Values, mine: int, mask: Read) -> Group:
    """The groups of the threads that are at an instruction."""
    threads = thread_of(values[mine])
    clock = values[0].clock
    warp = clock.warp_of(threads).astype(np.int64)
    lane = (threads % clock.threads % WARP).astype(np.int64)
    return Group(warp, lane, np.broadcast_to(mask(values), len(threads)).astype(np.int64))


def in_step(values: Values, mine: int, mask: Read) -> bool:
    """Whether the threads that are at an instruction are whole warps, lane by lane, and every one names all
    lanes. Nearly always they are, and then nobody needs to be looked for."""
    named = mask(values)
    if len(named) != 1 or int(named[0]) & EVERYONE != EVERYONE:
        return False
    wave, marks = values[0], values[mine]
    if wave.whole_warps is None or wave.whole_warps[0] is not marks:
        wave.whole_warps = marks, _are_whole_warps(thread_of(marks), wave.clock.threads)
    found: bool = wave.whole_warps[1]
    return found


def _are_whole_warps(threads: HostArray, per_block: int) -> bool:
    if len(threads) % WARP or per_block % WARP:
        return False
    warps = threads.reshape(-1, WARP)
    return not (warps[:, 0] % WARP).any() and bool((warps == warps[:, :1] + np.arange(WARP)).all())


def complete(group: Group) -> HostArray:
    """For each lane, whether all whom its mask names are there, with the same mask and itself among them."""
    keys = group.warp << WARP | group.mask
    which = np.unique(keys, return_inverse=True)[1].reshape(-1)
    named = np.zeros(len(keys), np.int64)
    for bit in range(WARP):
        named += group.mask >> bit & 1
    own = group.mask >> group.lane & 1
    there = np.bincount(which, weights=own)
    together: HostArray = (there[which] == named) & (own == 1)
    return together


def missing(group: Group, position: int) -> int:
    """The lanes, as bits, that the one at ``position`` names and that aren't there with its mask."""
    same = (group.warp == group.warp[position]) & (group.mask == group.mask[position])
    there = int(np.bitwise_or.reduce(np.int64(1) << group.lane[same]))
    return int(group.mask[position]) & ~there


def meeting(instruction: Instruction, slots: Slots) -> Meeting | None:
    """The meeting that an instruction is; None if it is none. Raises PtxError."""
    build = _MEETINGS.get((instruction.opcode, *instruction.modifiers[:1]))
    if build is None:
        return None
    if len(instruction.modifiers) != (2 if build is _barrier else 3):
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    return build(instruction, slots)


def activemask(instruction: Instruction, slots: Slots) -> Step:
    """``activemask``: the lanes of the warp that are here now (PTX ISA, "activemask")."""
    form = Form(instruction)
    form.type("b32")
    if len(instruction.operands) != 1 or len(instruction.modifiers) != 1:
        form.unknown()
    target = _target(instruction.operands[0], "b32", slots, instruction)
    mine = slots.special(MINE)
    everyone = slots.constant(0xFFFFFFFF, np.dtype("u4"))

    def run(values: Values) -> None:
        group = group_of(values, mine, lambda v: v[everyone])
        bits = _over_groups(group, np.int64(1) << group.lane, np.bitwise_or)
        values[target] = bits.astype(np.uint32)

    return Step(instruction, run, (mine,), (target,))


def _shuffle(instruction: Instruction, slots: Slots) -> Meeting:
    """``shfl.sync``: each lane gets the value of another, which the mode and ``b`` choose, or its own if that
    lies outside of the segment that ``c`` sets (PTX ISA, "shfl.sync")."""
    form = Form(instruction)
    form.needs("sync")
    mode = form.needs("up", "down", "bfly", "idx")
    kind = form.type("b32")
    results, sources = _operands(instruction, 4, form)
    targets = results_of(results)
    slot_a, read_a = slots.source(sources[0], kind, instruction)
    value = reading(slot_a, read_a, kind.dtype)
    read_b, read_c, mask = (_read(operand, TYPES["b32"], instruction, slots) for operand in sources[1:])
    to = [
        _target(target, want, slots, instruction)
        for target, want in zip(targets, ("b32", "pred"), strict=False)
    ]
    if len(targets) > 2:
        form.unknown("a third result")
    mine = slots.special(MINE)

    def run(values: Values) -> None:
        b, c = read_b[1](values), read_c[1](values)
        if in_step(values, mine, mask[1]):
            warps = len(values[mine]) // WARP
            source, inside = _source_lanes(mode, _LANES, _by_warps(b), _by_warps(c))
            places = source + np.arange(0, warps * WARP, WARP)[:, np.newaxis]
            given = np.broadcast_to(value(values), warps * WARP)
            for target, result in zip(to, (given.take(places), inside), strict=False):
                if target:
                    spread = np.broadcast_to(result, places.shape)
                    values[target] = np.ascontiguousarray(spread).reshape(-1)
            return
        group = group_of(values, mine, mask[1])
        lane, n = group.lane, len(group.lane)
        source, inside = _source_lanes(mode, lane, b, c)
        absent = group.mask >> source & 1 == 0
        if absent.any():
            position = int(absent.argmax())
            raise Violation(
                instruction,
                position,
                f"takes a value from lane {int(source[position])}, which doesn't take part (mask "
                f"{int(group.mask[position]):#010x})",
            )
        values_a = np.broadcast_to(value(values), n)
        keys = group.warp * WARP + lane
        order = np.argsort(keys, kind="stable")
        found = order[np.searchsorted(keys[order], group.warp * WARP + source)]
        for target, result in zip(to, (values_a[found], inside), strict=False):
            if target:
                values[target] = np.ascontiguousarray(np.broadcast_to(result, n))

    reads = (slot_a, read_b[0], read_c[0], mask[0], mine)
    return Meeting(Step(instruction, run, reads, tuple(t for t in to if t)), mask[1], False)


_LANES = np.arange(WARP)


def _by_warps(value: HostArray) -> HostArray:
    return value if len(value) == 1 else value.reshape(-1, WARP)


def _source_lanes(mode: str, lane: HostArray, b: HostArray, c: HostArray) -> tuple[HostArray, HostArray]:
    """The lanes from which a shuffle gives ``lane`` values, and whether they lie inside of its segment."""
    b = b.astype(np.int64) & (WARP - 1)
    c = c.astype(np.int64)
    segment, clamp = c >> 8 & (WARP - 1), c & (WARP - 1)
    first = lane & segment
    last = first | clamp & ~segment
    if mode == "up":
        source = lane - b
        inside = source >= last
    elif mode == "down":
        source = lane + b
        inside = source <= last
    elif mode == "bfly":
        source = lane ^ b
        inside = source <= last
    else:
        source = first | b & ~segment
        inside = source <= last
    return np.where(inside, source, lane), inside


def _vote(instruction: Instruction, slots: Slots) -> Meeting:
    """``vote.sync``: what the lanes' predicates say together (PTX ISA, "vote.sync")."""
    form = Form(instruction)
    form.needs("sync")
    mode = form.needs("all", "any", "uni", "ballot")
    kind = form.type("b32" if mode == "ballot" else "pred")
    results, sources = _operands(instruction, 2, form)
    asked = _read(sources[0], TYPES["pred"], instruction, slots)
    mask = _read(sources[1], TYPES["b32"], instruction, slots)
    target = _target(results, kind.name, slots, instruction)
    mine = slots.special(MINE)

    def run(values: Values) -> None:
        group = group_of(values, mine, mask[1])
        bits = np.where(asked[1](values), np.int64(1) << group.lane, 0)
        votes = _over_groups(group, bits, np.bitwise_or)
        if target:
            values[target] = _outcome(mode, votes, group.mask)

    step = Step(instruction, run, (asked[0], mask[0], mine), (target,) if target else ())
    return Meeting(step, mask[1], False)


def _outcome(mode: str, votes: HostArray, mask: HostArray) -> HostArray:
    """What a vote comes to, from the bits of the lanes that are for it."""
    outcome: HostArray
    if mode == "all":
        outcome = votes == mask
    elif mode == "any":
        outcome = votes != 0
    elif mode == "uni":
        outcome = (votes == mask) | (votes == 0)
    else:
        outcome = votes.astype(np.uint32)
    return outcome


def _reduce(instruction: Instruction, slots: Slots) -> Meeting:
    """``redux.sync``: an integer operation over the lanes (PTX ISA, "redux.sync")."""
    form = Form(instruction)
    form.needs("sync")
    name = form.needs(*_REDUCTIONS)
    kind = form.type(*(("b32",) if name in ("and", "or", "xor") else ("u32", "s32")))
    results, sources = _operands(instruction, 2, form)
    value = _read(sources[0], kind, instruction, slots)
    mask = _read(sources[1], TYPES["b32"], instruction, slots)
    target = _target(results, kind.name, slots, instruction)
    mine = slots.special(MINE)

    def run(values: Values) -> None:
        group = group_of(values, mine, mask[1])
        given = np.broadcast_to(value[1](values), len(group.lane))
        if target:
            values[target] = _over_groups(group, given, _REDUCTIONS[name])

    step = Step(instruction, run, (value[0], mask[0], mine), (target,) if target else ())
    return Meeting(step, mask[1], False)


def _barrier(instruction: Instruction, slots: Slots) -> Meeting:
    """``bar.warp.sync``: lanes wait for one another, and see what each wrote (PTX ISA, "bar.warp.sync")."""
    form = Form(instruction)
    form.needs("warp")
    form.needs("sync")
    if len(instruction.operands) != 1:
        form.fail("the mask of lanes is due")
    mask = _read(instruction.operands[0], TYPES["b32"], instruction, slots)
    mine = slots.special(MINE)
    return Meeting(Step(instruction, lambda values: None, (mask[0], mine), ()), mask[1], True)


_REDUCTIONS: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}

_MEETINGS: dict[tuple[str, ...], Callable[[Instruction, Slots], Meeting]] = {
    ("shfl", "sync"): _shuffle,
    ("vote", "sync"): _vote,
    ("redux", "sync"): _reduce,
    ("bar", "warp"): _barrier,
}


def _over_groups(group: Group, given: HostArray, operation: np.ufunc) -> HostArray:
    """For each lane, ``operation`` over the values of its group."""
    _, which = np.unique(group.warp << WARP | group.mask, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    begins = np.flatnonzero(np.diff(which[order], prepend=-1))
    results: HostArray = operation.reduceat(given[order], begins)[which].astype(given.dtype)
    return results


def _read(operand: Operand, kind: Type, instruction: Instruction, slots: Slots) -> tuple[int, Read]:
    slot, read = slots.source(operand, kind, instruction)
    return slot, reading(slot, read, kind.dtype)


def _target(operand: Operand, kind: str, slots: Slots, instruction: Instruction) -> int:
    if isinstance(operand, Sink):
        return 0
    if not isinstance(operand, Register) or operand.type.bits != TYPES[kind].bits:
        raise error(instruction, f"a register for a .{kind} is due")
    return slots.register(operand)


def _operands(instruction: Instruction, sources: int, form: Form) -> tuple[Operand, tuple[Operand, ...]]:
    if len(instruction.operands) != 1 + sources:
        form.fail(f"{instruction.name} takes a result and {sources} operands")
    return instruction.operands[0], instruction.operands[1:]
