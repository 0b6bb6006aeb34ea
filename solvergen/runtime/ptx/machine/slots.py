"""Places for a kernel's values: all that an instruction reads or writes is an entry of one list.

The list (``Values``) has at 0 the wave that the threads belong to, then the kernel's registers, then
constants and special registers as they are met. Each value is an array with one entry a thread, or with one
entry that all threads share. A register's array has the type that was written last; readers view it as
theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from solvergen.errors import PtxError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.specials import SPECIALS, why_unknown
from solvergen.runtime.ptx.module import (
    Float,
    Instruction,
    Integer,
    Kernel,
    Not,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)
from solvergen.runtime.ptx.types import Type

Values = list[Any]
"""Index 0: the ``Wave``. Everything else: arrays, or None where nothing is yet."""

MINE = "mine"
"""Not a register of PTX: the marks that the threads leave in memory."""

Read = Callable[[Values], HostArray]


class Slots:
    """The places of one kernel. ``addresses``: of its variables, by name."""

    def __init__(self, kernel: Kernel, addresses: dict[str, int]) -> None:
        self.template: Values = [None] * (1 + len(kernel.registers))
        self.names = ["", *(register.name for register in kernel.registers)]
        self._kernel = kernel
        self._addresses = addresses
        self._constants: dict[tuple[str, int], int] = {}
        self.specials: dict[str, int] = {}
        """Slots that are filled for each bundle of threads."""

    def is_varying(self, slot: int) -> bool:
        """Whether threads may have different values there: a register or a special register."""
        return 0 < slot <= len(self._kernel.registers) or slot in self.specials.values()

    def register(self, register: Register) -> int:
        """Where a register is."""
        return 1 + register.slot

    def special(self, name: str) -> int:
        """Where a special register is."""
        if name not in self.specials:
            self.specials[name] = self._add(None, name)
        return self.specials[name]

    def constant(self, bits: int, dtype: np.dtype[Any]) -> int:
        """Where a constant of these bits is, as an array of length 1 and of ``dtype``."""
        key = dtype.str, bits
        if key not in self._constants:
            word = np.array([bits], f"u{dtype.itemsize}") if dtype.kind != "b" else np.array([bits], "u1")
            word.flags.writeable = False
            self._constants[key] = self._add(word.view(dtype), "")
        return self._constants[key]

    def _add(self, value: HostArray | None, name: str) -> int:
        self.template.append(value)
        self.names.append(name)
        return len(self.template) - 1

    def address(self, symbol: Symbol, instruction: Instruction) -> int:
        """The address of a variable. Raises PtxError."""
        if symbol.name not in self._addresses:
            raise error(instruction, f"{symbol.name} is not a variable whose address can be used here")
        return self._addresses[symbol.name]

    def source(self, operand: Operand, kind: Type, instruction: Instruction) -> tuple[int, Read | None]:
        """Where a value of type ``kind`` is read, and how, if a view of its array isn't enough."""
        if isinstance(operand, Not):
            slot = self.register(operand.register)
            return slot, lambda values: ~values[slot]
        if isinstance(operand, Register):
            return self.register(operand), _reading(self.register(operand), operand.type, kind, instruction)
        if isinstance(operand, Special):
            if operand.name not in SPECIALS:
                raise error(instruction, f"{operand.name} {why_unknown(operand.name)}")
            slot = self.special(operand.name)
            return slot, _reading(slot, SPECIALS[operand.name].type, kind, instruction)
        return self.constant(self._bits(operand, kind, instruction), kind.dtype), None

    def _bits(self, operand: Operand, kind: Type, instruction: Instruction) -> int:
        limit = (1 << kind.bits) - 1
        if isinstance(operand, Float):
            if kind.bits == operand.width:
                return operand.bits
            if (kind.kind, kind.bits, operand.width) == ("float", 32, 64):
                wide = np.array([operand.bits], "u8").view("f8")
                with np.errstate(all="ignore"):
                    return int(wide.astype("f4").view("u4")[0])
        if isinstance(operand, Integer) and kind.kind != "float":
            if kind.kind == "predicate":
                return int(operand.value != 0)
            if -(1 << (kind.bits - 1)) <= operand.value <= limit:
                return operand.value & limit
        if isinstance(operand, Symbol):
            return self.address(operand, instruction) & limit
        raise error(instruction, f"operand {operand} can't be read as {kind}")


def _reading(slot: int, held: Type, kind: Type, instruction: Instruction) -> Read | None:
    """How a register of type ``held`` is read as ``kind``: None if a view of its array does."""
    if (held.kind == "predicate") != (kind.kind == "predicate"):
        raise error(instruction, f"a {held} register can't be read as {kind}")
    if held.bits == kind.bits:
        return None
    if held.bits < kind.bits:
        raise error(instruction, f"a {held} register is too narrow to be read as {kind}")
    whole, low, dtype = np.dtype(f"u{held.nbytes}"), np.dtype(f"u{kind.nbytes}"), kind.dtype
    return lambda values: values[slot].view(whole).astype(low).view(dtype)


def results_of(operand: Operand) -> tuple[Operand, ...]:
    """The places that a destination operand names, in order."""
    if isinstance(operand, Vector):
        return operand.elements
    if isinstance(operand, Pair):
        return operand.first, operand.second
    return (operand,)


def widened(register: Register, kind: Type, instruction: Instruction) -> np.dtype[Any] | None:
    """The type to which a result of ``kind`` is extended for its register: None if it fits as it is.

    Signed values keep their sign, all others get zeros (PTX ISA, "Operand Size Exceeding Instruction-Type
    Size"). Raises PtxError where the register is too narrow.
    """
    held = register.type
    if (held.kind == "predicate") != (kind.kind == "predicate") or held.bits < kind.bits:
        raise error(instruction, f"a {held} register can't take a result of type {kind}")
    if held.bits == kind.bits:
        return None
    return np.dtype(f"{'i' if kind.kind == 'signed' else 'u'}{held.nbytes}")


def extend(value: HostArray, dtype: np.dtype[Any]) -> HostArray:
    """A value in a wider register. A float's bits are its low ones."""
    if value.dtype.kind == "f":
        value = value.view(f"u{value.dtype.itemsize}")
    return value.astype(dtype)


def error(instruction: Instruction, message: str) -> PtxError:
    """What is wrong with an instruction."""
    return PtxError(message, line=instruction.place.line, text=instruction.place.text)
