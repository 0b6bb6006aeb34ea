"""The loops of a kernel in PTX, and how often each path through one does something."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from solvergen.runtime.ptx.module import Kernel, Symbol


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: where it begins, and all of its instructions, by their indices."""

    head: int
    body: frozenset[int]


@dataclass(frozen=True)
class Flow:
    """Where control goes from each instruction of a kernel."""

    kernel: Kernel

    @cached_property
    def after(self) -> tuple[tuple[int, ...], ...]:
        """For each instruction those that may come next. One that is guarded may go around itself: that is
        not in here, see ``counts``."""
        found: list[tuple[int, ...]] = []
        count = len(self.kernel.instructions)
        for index, instruction in enumerate(self.kernel.instructions):
            following = (index + 1,) if index + 1 < count else ()
            if instruction.opcode == "bra" and isinstance(instruction.operands[0], Symbol):
                target = self.kernel.labels[instruction.operands[0].name]
                following = (target,) if instruction.guard is None else (target, *following)
            elif instruction.opcode in ("ret", "exit", "trap") and instruction.guard is None:
                following = ()
            found.append(tuple(f for f in following if f < count))
        return tuple(found)

    @cached_property
    def _walk(self) -> tuple[tuple[int, ...], frozenset[tuple[int, int]]]:
        """Instructions that can be reached, each before all that come after it in one iteration; and the
        steps that lead back to where a loop begins."""
        order: list[int] = []
        back: set[tuple[int, int]] = set()
        state: dict[int, int] = {}  # 1: being walked, 2: done
        if not self.kernel.instructions:
            return (), frozenset()
        stack: list[tuple[int, int]] = [(0, 0)]
        state[0] = 1
        while stack:
            node, turn = stack.pop()
            if turn < len(self.after[node]):
                stack.append((node, turn + 1))
                following = self.after[node][turn]
                if state.get(following) == 1:
                    back.add((node, following))
                elif following not in state:
                    state[following] = 1
                    stack.append((following, 0))
            else:
                state[node] = 2
                order.append(node)
        return tuple(reversed(order)), frozenset(back)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """Every loop, in the order of their beginnings."""
        before: dict[int, list[int]] = {}
        for node, following in enumerate(self.after):
            for f in following:
                before.setdefault(f, []).append(node)
        reached = set(self._walk[0])
        bodies: dict[int, set[int]] = {}
        for latch, head in self._walk[1]:
            body = bodies.setdefault(head, {head})
            todo = [latch]
            while todo:
                node = todo.pop()
                if node not in body and node in reached:
                    body.add(node)
                    todo += before.get(node, ())
        return tuple(Loop(head, frozenset(bodies[head])) for head in sorted(bodies))

    def innermost(self, nodes: Iterable[int]) -> tuple[Loop, ...]:
        """The loops around any of these instructions, each without those that have another such within."""
        wanted = set(nodes)
        around = [loop for loop in self.loops if loop.body & wanted]
        return tuple(
            loop for loop in around if not any(o.body < loop.body and o.body & wanted for o in around)
        )

    def counts(
        self, loop: Loop, weights: Mapping[int, int], through: frozenset[int] = frozenset()
    ) -> tuple[int, int]:
        """The least and the largest sum of the instructions' weights that one iteration may come to.

        A guarded instruction counts or doesn't. Loops within the loop count as though run once. If
        ``through`` names instructions, iterations that come to none of them aren't looked at.
        """
        order, back = self._walk
        # By the instruction, and whether one of those to go through has been met.
        bounds: dict[tuple[int, bool], tuple[int, int]] = {(loop.head, not through): (0, 0)}
        ends: list[tuple[int, int]] = []
        for node in order:
            if node not in loop.body:
                continue
            weight = weights.get(node, 0)
            instruction = self.kernel.instructions[node]
            guarded = instruction.guard is not None and instruction.opcode != "bra"
            for met in (False, True):
                if (node, met) not in bounds:
                    continue
                low, high = bounds[node, met]
                low, high = low + (0 if guarded else weight), high + weight
                now = met or node in through
                for following in self.after[node]:
                    if (node, following) in back:
                        if following == loop.head and now:
                            ends.append((low, high))
                    elif following in loop.body:
                        known = bounds.get((following, now), (low, high))
                        bounds[following, now] = min(known[0], low), max(known[1], high)
        if not ends:
            return 0, 0
        return min(low for low, _ in ends), max(high for _, high in ends)
