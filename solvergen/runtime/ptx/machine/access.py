"""Loads, stores and atomics, each as one function over a list of values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.addresses import WINDOWS, address, space_of
from solvergen.runtime.ptx.machine.atomics import CHANGES, change_of
from solvergen.runtime.ptx.machine.faults import Violation
from solvergen.runtime.ptx.machine.kinds import Access, Kind
from solvergen.runtime.ptx.machine.memory import Memory
from solvergen.runtime.ptx.machine.modifiers import access_form
from solvergen.runtime.ptx.machine.slots import MINE, Slots, Values, error, extend, results_of, widened
from solvergen.runtime.ptx.machine.step import Step
from solvergen.runtime.ptx.machine.values import reading
from solvergen.runtime.ptx.module import Address, Instruction, Kernel, Operand, Register, Sink, Symbol
from solvergen.runtime.ptx.types import Type

COPIES = {"shared": "shared copy", "local": "local copy"}
"""Not registers of PTX: which copy of shared and of local memory is a thread's."""


@dataclass(slots=True)
class There:
    """Where in one state space threads do something: its memory and name, their addresses, copies and marks,
    and the positions of those concerned (None: all)."""

    memory: Memory
    space: str
    at: HostArray
    copies: HostArray | None
    mine: HostArray
    some: HostArray | None = None

    def picked(self, values: tuple[HostArray, ...]) -> tuple[HostArray, ...]:
        """Of the values of all threads those of the ones concerned."""
        if self.some is None:
            return values
        return tuple(value if len(value) == 1 else value[self.some] for value in values)


Action = Callable[[There], "tuple[HostArray, ...]"]
"""What is done in one state space, and what comes of it."""


@dataclass(frozen=True, slots=True)
class Use:
    """What an instruction does to memory: in which space (None: generic), how, and how many bytes at once.

    ``nbytes`` is of the narrowest part that could be another thread's.
    """

    space: str | None
    kind: Kind
    nbytes: int


def load(instruction: Instruction, slots: Slots, kernel: Kernel) -> tuple[Step, Use | None]:
    """``ld``, of one value or a vector (PTX ISA, "ld")."""
    form = access_form(instruction)
    if len(instruction.operands) != 2:
        raise error(instruction, "a destination and an address are due")
    targets = _targets(instruction, form.count, form.type, slots)
    writes = tuple(target for target, _ in targets if target)
    if form.space == "param":
        return Step(instruction, _parameter(instruction, form.type, targets, kernel), (), writes), None
    kind: Kind = "constant read" if form.constant else "strong read" if form.strong else "read"
    access = Access(instruction, form.type.dtype, form.count, kind)
    reads, perform = _performer(instruction, instruction.operands[1], form.space, slots)

    def action(there: There) -> tuple[HostArray, ...]:
        return there.memory.load(access, there.at, there.copies, there.mine)

    def run(values: Values) -> None:
        for (target, wide), value in zip(targets, perform(values, action), strict=True):
            if target:
                values[target] = value if wide is None else extend(value, wide)

    return Step(instruction, run, reads, writes), Use(form.space, access.kind, access.nbytes)


def store(instruction: Instruction, slots: Slots) -> tuple[Step, Use]:
    """``st``, of one value or a vector (PTX ISA, "st")."""
    form = access_form(instruction)
    if len(instruction.operands) != 2:
        raise error(instruction, "an address and a value are due")
    if form.space in ("param", "const"):
        raise error(instruction, f"nothing can be stored to .{form.space}")
    sources = results_of(instruction.operands[1])
    if len(sources) != form.count:
        raise error(instruction, f"{form.count} values are due, found {len(sources)}")
    places, read = _sources(instruction, sources, form.type, slots)
    access = Access(instruction, form.type.dtype, form.count, "strong write" if form.strong else "write")
    reads, perform = _performer(instruction, instruction.operands[0], form.space, slots)

    def run(values: Values) -> None:
        what = read(values)

        def action(there: There) -> tuple[HostArray, ...]:
            there.memory.store(access, there.at, there.copies, there.mine, there.picked(what))
            return ()

        perform(values, action)

    return Step(instruction, run, (*reads, *places), ()), Use(form.space, access.kind, access.nbytes)


def atomic(instruction: Instruction, slots: Slots) -> tuple[Step, Use]:
    """``atom`` and, without a result, ``red`` (PTX ISA, "atom", "red")."""
    form = access_form(instruction, frozenset(CHANGES))
    returns = instruction.opcode == "atom"
    operands = instruction.operands[1 if returns else 0 :]
    found = change_of(form.operation, form.type.name, form.space or "global")
    if found is None or form.space not in (None, "global", "shared"):
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    if len(operands) != 1 + found[1]:
        raise error(instruction, f"an address and {found[1]} operand(s) are due")
    targets = _targets(instruction, 1, form.type, slots) if returns else []
    places, read = _sources(instruction, operands[1:], form.type, slots)
    access = Access(instruction, form.type.dtype, 1, "atomic")
    reads, perform = _performer(instruction, operands[0], form.space, slots)
    changes = {
        space: change
        for space in ("global", "shared", "local")
        if (known := change_of(form.operation, form.type.name, space)) is not None
        for change in [known[0]]
    }

    def run(values: Values) -> None:
        what = read(values)

        def action(there: There) -> tuple[HostArray, ...]:
            change, values = changes[there.space], there.picked(what)
            return (there.memory.update(access, there.at, there.copies, there.mine, change, values),)

        results = perform(values, action)
        for (target, wide), value in zip(targets, results, strict=False):
            if target:
                values[target] = value if wide is None else extend(value, wide)

    writes = tuple(target for target, _ in targets if target)
    return Step(instruction, run, (*reads, *places), writes), Use(form.space, "atomic", access.nbytes)


def _targets(
    instruction: Instruction, count: int, kind: Type, slots: Slots
) -> list[tuple[int, np.dtype[Any] | None]]:
    """Slots of the results (0 for ``_``), and the type that each is extended to."""
    operands = results_of(instruction.operands[0])
    if len(operands) != count:
        raise error(instruction, f"{count} results are due, found {len(operands)}")
    targets: list[tuple[int, np.dtype[Any] | None]] = []
    for operand in operands:
        if isinstance(operand, Sink):
            targets.append((0, None))
        elif isinstance(operand, Register):
            targets.append((slots.register(operand), widened(operand, kind, instruction)))
        else:
            raise error(instruction, f"a result can't go to {operand}")
    return targets


def _sources(
    instruction: Instruction, operands: tuple[Operand, ...], kind: Type, slots: Slots
) -> tuple[list[int], Callable[[Values], tuple[HostArray, ...]]]:
    places = [slots.source(operand, kind, instruction) for operand in operands]
    readers = [reading(slot, read, kind.dtype) for slot, read in places]
    return [slot for slot, _ in places], lambda values: tuple([read(values) for read in readers])


def _parameter(
    instruction: Instruction,
    kind: Type,
    targets: list[tuple[int, np.dtype[Any] | None]],
    kernel: Kernel,
) -> Callable[[Values], None]:
    """``ld.param``: the same for all threads of a launch."""
    operand = instruction.operands[1]
    known = {parameter.name: parameter for parameter in kernel.parameters}
    if not (isinstance(operand, Address) and isinstance(operand.base, Symbol) and operand.base.name in known):
        raise error(instruction, "a parameter of the kernel is due")
    parameter = known[operand.base.name]
    nbytes = kind.nbytes * len(targets)
    if not 0 <= operand.offset <= parameter.nbytes - nbytes or operand.offset % nbytes:
        raise error(instruction, f"{nbytes} bytes from byte {operand.offset} are not in {parameter.name}")
    begin = parameter.offset + operand.offset

    def run(values: Values) -> None:
        block = values[0].parameters[begin : begin + nbytes].view(kind.dtype)
        for place, (target, wide) in enumerate(targets):
            if target:
                value = block[place : place + 1]
                values[target] = value if wide is None else extend(value, wide)

    return run


def _performer(
    instruction: Instruction, operand: Operand, space: str | None, slots: Slots
) -> tuple[tuple[int, ...], Callable[[Values, Action], Any]]:
    """What is read to find an address's memory, and a function that does something there."""
    slot, read = address(instruction, operand, slots, space)
    mine = slots.special(MINE)
    copies = {name: slots.special(COPIES[name]) for name in COPIES if space in (None, name)}

    def in_one(values: Values, action: Action) -> Any:
        name = space or ""
        memory = values[0].memories["global" if name == "const" else name]
        own = values[copies[name]] if name in copies else None
        return action(There(memory, name, read(values), own, values[mine]))

    def anywhere(values: Values, action: Action) -> Any:
        addresses, marks = read(values), values[mine]
        spaces = space_of(addresses)
        if isinstance(spaces, str):
            own = values[copies[spaces]] if spaces in copies else None
            return action(There(values[0].memories[spaces], spaces, addresses - WINDOWS[spaces], own, marks))
        results: list[HostArray] = []
        for name, some in spaces:
            own = np.broadcast_to(values[copies[name]], len(marks))[some] if name in copies else None
            memory, places = values[0].memories[name], addresses[some] - WINDOWS[name]
            try:
                found = action(There(memory, name, places, own, marks[some], some))
            except Violation as violation:
                violation.position = int(some[violation.position])
                raise
            results = results or [np.empty(len(marks), value.dtype) for value in found]
            for result, value in zip(results, found, strict=True):
                result[some] = value
        return tuple(results)

    reads = (slot, mine, *copies.values())
    return reads, anywhere if space is None else in_one
