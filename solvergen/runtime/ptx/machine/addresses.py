"""Addresses: how an operand says one, and which state space a generic one is in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.regions import GLOBAL_VARIABLES, LOCAL_WINDOW, SHARED_WINDOW
from solvergen.runtime.ptx.machine.slots import Read, Slots, Values, error
from solvergen.runtime.ptx.machine.step import Step
from solvergen.runtime.ptx.module import Address, Instruction, Register, Symbol
from solvergen.runtime.ptx.types import TYPES

_SIGNED, _UNSIGNED = np.dtype("i8"), np.dtype("u8")

WINDOWS = {"global": 0, "const": 0, "shared": SHARED_WINDOW, "local": LOCAL_WINDOW}
"""What makes an address of each state space generic."""


def address(instruction: Instruction, operand: object, slots: Slots, space: str | None) -> tuple[int, Read]:
    """The place that an address comes from, and how it is read, as int64. Raises PtxError."""
    if not isinstance(operand, Address) or operand.base is None:
        raise error(instruction, "an address in a register, or that of a variable, is due")
    offset = (operand.offset + (1 << 63)) % (1 << 64) - (1 << 63)  # addresses wrap around
    if isinstance(operand.base, Symbol):
        known = slots.address(operand.base, instruction) + offset
        if space is None and known < GLOBAL_VARIABLES:
            raise error(instruction, f"{operand.base.name} has no generic address; say its state space")
        slot = slots.constant(known & (1 << 64) - 1, _SIGNED)
        return slot, lambda values: values[slot]
    base: Register = operand.base
    slot = slots.register(base)
    if base.type.bits == 32 and space in ("shared", "local", "const"):

        def short(values: Values) -> HostArray:
            found: HostArray = values[slot].view(np.uint32).astype(_SIGNED)
            return found + offset if offset else found

        return slot, short
    if base.type.bits != 64:
        raise error(instruction, f"a {base.type} register is no address here")

    def wide(values: Values) -> HostArray:
        found: HostArray = values[slot]
        if found.dtype is not _SIGNED:
            found = found.view(_SIGNED)
        return found + offset if offset else found

    return slot, wide


def space_of(addresses: HostArray) -> str | list[tuple[str, HostArray]]:
    """The state space of generic addresses: one, or each with the positions of those that are in it."""
    low, high = int(addresses.min()), int(addresses.max())
    if high < SHARED_WINDOW:
        return "global"
    if low >= LOCAL_WINDOW:
        return "local"
    if low >= SHARED_WINDOW and high < LOCAL_WINDOW:
        return "shared"
    local, shared = addresses >= LOCAL_WINDOW, addresses >= SHARED_WINDOW
    spaces = {"global": ~shared, "shared": shared & ~local, "local": local}
    return [(name, np.flatnonzero(there)) for name, there in spaces.items() if there.any()]


def _convert(instruction: Instruction, slots: Slots, compute: Callable[[HostArray], HostArray]) -> Step:
    target, operand = _two(instruction)
    kind = TYPES["u64"]
    slot, read = slots.source(operand, kind, instruction)
    if read is not None or target.type.bits not in (1, 64):
        raise error(instruction, "an address has 64 bits")
    to = slots.register(target)

    def run(values: Values) -> None:
        found = values[slot]
        values[to] = compute(found if found.dtype is _UNSIGNED else found.view(_UNSIGNED))

    return Step(instruction, run, (slot,), (to,))


def cvta(instruction: Instruction, slots: Slots) -> Step:
    """``cvta``: an address of a state space made generic; ``cvta.to``: a generic one made one of the space.

    Only shared and local memory have windows (PTX ISA, "cvta").
    """
    to = instruction.modifiers[:1] == ("to",)
    rest = instruction.modifiers[1:] if to else instruction.modifiers
    space = rest[0].removesuffix("::cta") if rest else ""
    if len(rest) != 2 or space not in WINDOWS or rest[1] != "u64":
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    window = np.uint64(WINDOWS[space])
    if not window:
        return _convert(instruction, slots, lambda found: found)
    return _convert(instruction, slots, (lambda x: x - window) if to else (lambda x: x + window))


def isspacep(instruction: Instruction, slots: Slots) -> Step:
    """``isspacep``: whether a generic address lies in a state space (PTX ISA, "isspacep")."""
    space = instruction.modifiers[0].removesuffix("::cta") if len(instruction.modifiers) == 1 else ""
    bounds: dict[str, tuple[int, int]] = {
        "global": (0, SHARED_WINDOW),
        "shared": (SHARED_WINDOW, LOCAL_WINDOW),
        "local": (LOCAL_WINDOW, 1 << 64),
    }
    if space not in bounds:
        raise error(instruction, f"the interpreter doesn't know {instruction.name}")
    low, high = np.uint64(bounds[space][0]), np.uint64(bounds[space][1] - 1)
    return _convert(instruction, slots, lambda found: (found >= low) & (found <= high))


def _two(instruction: Instruction) -> tuple[Register, Any]:
    if len(instruction.operands) != 2 or not isinstance(instruction.operands[0], Register):
        raise error(instruction, "a register and one operand are due")
    return instruction.operands[0], instruction.operands[1]
