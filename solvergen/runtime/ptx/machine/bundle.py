"""Threads that run together: one array for each register, the first instruction at which any thread is.

Threads part where a branch says so and come together again at the first block that both reach. Where lanes
meet is put off until all threads are at such places. A block that
all of a bundle's threads run works on the registers themselves; one that only some run works on what they
bring along, and leaves there what is of use later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.access import COPIES
from solvergen.runtime.ptx.machine.faults import Violation
from solvergen.runtime.ptx.machine.flow import Choose, Leave, Meet, Next
from solvergen.runtime.ptx.machine.marks import mark_of
from solvergen.runtime.ptx.machine.program import Block, Program
from solvergen.runtime.ptx.machine.slots import MINE, Values
from solvergen.runtime.ptx.machine.specials import SPECIALS, Threads
from solvergen.runtime.ptx.machine.warps import complete, group_of, in_step, missing

if TYPE_CHECKING:
    from solvergen.runtime.ptx.machine.wave import Wave

Lanes = HostArray | None
"""Positions of threads in a bundle, ascending; None for all of them."""

_NOBODY = np.empty(0, np.int64)


class Bundle:
    """Some threads of a wave. ``numbers``: theirs in the grid; ``waiting``: those at barriers."""

    def __init__(
        self, program: Program, wave: Wave, threads: Threads, numbers: HostArray, copies: dict[str, HostArray]
    ) -> None:
        self.numbers = numbers
        self.waiting: list[tuple[Lanes, Meet]] = []
        self._program = program
        self._wave = wave
        self._count = len(numbers)
        self._alive = np.ones(self._count, np.bool_)
        self._pending: dict[int, list[Lanes]] = {0: [None]}
        self._stalled: dict[int, list[Lanes]] = {}
        self._written: dict[int, HostArray] = {}
        self._values: Values = list(program.slots.template)
        self._values[0] = wave
        for name, slot in program.slots.specials.items():
            if name == MINE:
                self._values[slot] = mark_of(numbers)
            elif name in COPIES.values():
                self._values[slot] = copies[name]
            else:
                self._values[slot] = SPECIALS[name].values(threads)

    def run(self) -> None:
        """Run until every thread has ended or waits at a barrier of its block.

        Raises Violation, whose position is a thread of this bundle.
        """
        while self._pending:
            at = self._next()
            block = self._program.blocks[at]
            lanes = self._arrived(at)
            if block.meeting is not None:
                lanes = self._met(at, block, lanes)
                if lanes is _NOBODY:
                    continue
            try:
                self._run_block(block, lanes)
            except Violation as violation:
                if lanes is not None:
                    violation.position = int(lanes[violation.position])
                raise
        self._refuse_stalled()

    def _next(self) -> int:
        """The first block in the text at which any thread is; one where lanes meet only if there is no other,
        so that they come there together."""
        if len(self._pending) == 1:
            (at,) = self._pending
            return at
        blocks = self._program.blocks
        return min(self._pending, key=lambda at: (blocks[at].meeting is not None, at))

    def go_on(self) -> None:
        """The barriers at which threads wait have been reached by all."""
        waiting, self.waiting = self.waiting, []
        for lanes, meet in waiting:
            self._send(meet.target, lanes)

    def lanes(self, lanes: Lanes) -> HostArray:
        """Positions, also where they are all."""
        return np.arange(self._count) if lanes is None else lanes

    def _run_block(self, block: Block, lanes: Lanes) -> None:
        self._wave.spend(len(block.runs) + 1, block)
        values = self._values if lanes is None else self._brought(block, lanes)
        if block.asked:
            self._check_written(block, lanes)
        if self._wave.watch is None:
            for run in block.runs:
                run(values)
        else:
            self._wave.watch(block, self.numbers[self.lanes(lanes)], values)
        if lanes is not None:
            self._leave_behind(block, lanes, values)
        for slot in block.given:
            written = self._written.setdefault(slot, np.zeros(self._count, np.bool_))
            written[slice(None) if lanes is None else lanes] = True
        if block.meeting is not None and block.meeting.synchronizes:
            self._warps_met(block, lanes, values)
        self._end(block, lanes, values)
        if lanes is None:
            for slot in block.spent:
                values[slot] = None

    def _brought(self, block: Block, lanes: HostArray) -> Values:
        values = self._values.copy()
        for slot in block.gather:
            value = values[slot]
            if value is not None and len(value) != 1:
                values[slot] = value.take(lanes)
        return values

    def _leave_behind(self, block: Block, lanes: HostArray, values: Values) -> None:
        for slot in block.scatter:
            old, new = self._values[slot], values[slot]
            if old is None:  # the others have nothing there and read nothing
                if len(new) == 1:
                    self._values[slot] = new
                    continue
                full = np.zeros(self._count, new.dtype)
            else:
                old = old.view(new.dtype)
                full = np.repeat(old, self._count) if len(old) == 1 else old.copy()
            full[lanes] = new
            self._values[slot] = full

    def _end(self, block: Block, lanes: Lanes, values: Values) -> None:
        end = block.end
        if isinstance(end, Next):
            self._send(end.target, lanes)
        elif isinstance(end, Choose):
            holds = values[end.predicate]
            if end.negated:
                holds = ~holds
            if holds.all():
                self._send(end.taken, lanes)
            elif not holds.any():
                self._send(end.other, lanes)
            else:
                everyone = self.lanes(lanes)
                if "uni" in end.instruction.modifiers:
                    self._refuse_parting(end, everyone, holds)
                self._send(end.taken, everyone[holds])
                self._send(end.other, everyone[~holds])
        elif isinstance(end, Meet):
            self.waiting.append((lanes, end))
        elif isinstance(end, Leave):
            self._alive[slice(None) if lanes is None else lanes] = False
        else:
            raise Violation(end.instruction, 0, end.why)

    def _send(self, target: int, lanes: Lanes) -> None:
        self._pending.setdefault(target, []).append(lanes)

    def _arrived(self, at: int) -> Lanes:
        parts = self._pending.pop(at) + self._stalled.pop(at, [])
        if len(parts) == 1:
            lanes = parts[0]
        else:
            lanes = np.sort(np.concatenate([part for part in parts if part is not None]))
        if lanes is None or len(lanes) == self._count:
            return None
        if len(lanes) == np.count_nonzero(self._alive):
            self._forget_the_dead(lanes)
            return None
        return lanes

    def _forget_the_dead(self, lanes: HostArray) -> None:
        """All threads that are left are at one place: the bundle is theirs alone from now on."""
        for slot, value in enumerate(self._values):
            if isinstance(value, np.ndarray) and len(value) == self._count:
                self._values[slot] = value[lanes]
        for slot, written in self._written.items():
            self._written[slot] = written[lanes]
        self.numbers, self._alive, self._count = self.numbers[lanes], self._alive[lanes], len(lanes)

    def _met(self, at: int, block: Block, lanes: Lanes) -> Lanes:
        """Of the threads that are at a meeting, those whose group is complete; the others wait there."""
        assert block.meeting is not None
        values = self._values if lanes is None else self._brought(block, lanes)
        if in_step(values, self._program.slots.special(MINE), block.meeting.mask):
            return lanes
        together = complete(group_of(values, self._program.slots.special(MINE), block.meeting.mask))
        if together.all():
            return lanes
        everyone = self.lanes(lanes)
        self._stalled[at] = [everyone[~together]]
        return everyone[together] if together.any() else _NOBODY

    def _warps_met(self, block: Block, lanes: Lanes, values: Values) -> None:
        """Warps all of whose threads have met: what came before is seen by them all."""
        assert block.meeting is not None
        clock = self._wave.clock
        group = group_of(values, self._program.slots.special(MINE), block.meeting.mask)
        alive, left = np.unique(clock.warp_of(self.numbers[self._alive]), return_counts=True)
        named = np.array([bin(mask).count("1") for mask in group.mask.tolist()])
        whole = named == left[np.searchsorted(alive, group.warp)]
        if whole.any():
            clock.warp_barrier(np.unique(group.warp[whole]))

    def _check_written(self, block: Block, lanes: Lanes) -> None:
        for slot, instruction in block.asked:
            written = self._written.get(slot)
            there = (
                np.zeros(1, np.bool_) if written is None else written[slice(None) if lanes is None else lanes]
            )
            if not there.all():
                name = self._program.slots.names[slot]
                raise Violation(
                    instruction, int(there.argmin()), f"reads {name}, to which it has written nothing"
                )

    def _refuse_parting(self, end: Choose, lanes: HostArray, holds: HostArray) -> None:
        """At ``bra.uni`` all threads of a warp that are there go the same way."""
        warps = self._wave.clock.warp_of(self.numbers[lanes])
        begins = np.flatnonzero(np.diff(warps, prepend=-1))
        parts = np.minimum.reduceat(holds, begins) != np.maximum.reduceat(holds, begins)
        if parts.any():
            why = "parts from threads of its warp at a branch that is said to be the same for all"
            raise Violation(end.instruction, int(begins[parts.argmax()]), why)

    def _refuse_stalled(self) -> None:
        for at, parts in self._stalled.items():
            block = self._program.blocks[at]
            assert block.meeting is not None
            lanes = np.sort(np.concatenate([self.lanes(part) for part in parts]))
            group = group_of(
                self._brought(block, lanes), self._program.slots.special(MINE), block.meeting.mask
            )
            step = block.meeting.step
            if not group.mask[0] >> group.lane[0] & 1:
                why = f"is lane {int(group.lane[0])}, which its mask {int(group.mask[0]):#010x} doesn't name"
            else:
                bits = missing(group, 0)
                names = ", ".join(str(lane) for lane in range(32) if bits >> lane & 1)
                mask = f"{int(group.mask[0]):#010x}"
                why = f"waits for lanes {names} of its warp, which never come here (mask {mask})"
            raise Violation(step.instruction, int(lanes[0]), why)
