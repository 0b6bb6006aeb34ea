"""What a PTX text says, as frozen data: kernels, their registers, their instructions.

Nothing here knows what an instruction does; ``instructions`` and the machine do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from solvergen.runtime.ptx.types import Type


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction stands.

    ``line``: in the PTX text, from 1. ``text``: the instruction alone, on one line. ``source``: its line in
    the CUDA text, by the nearest ``.loc`` before it, labels between or not; 0 where none says. ``calls``: of
    an inlined function, the lines of the calls that lead to it, the innermost first.
    """

    line: int
    text: str
    source: int = 0
    calls: tuple[int, ...] = ()

    @property
    def inlined_at(self) -> int:
        """The line of the outermost call; 0 if nothing was inlined."""
        return self.calls[-1] if self.calls else 0


@dataclass(frozen=True, slots=True)
class Register:
    """A declared register that some instruction names. ``slot`` is its index in ``Kernel.registers``."""

    name: str
    type: Type
    slot: int


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer constant, as written, signed; any value of 64 bits."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant by its bits: ``width`` 32 for ``0f...``, 64 for ``0d...`` and decimals."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Special:
    """A special register: ``%tid.x``, ``%laneid``."""

    name: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a parameter, a variable or a label, used as an operand."""

    name: str


@dataclass(frozen=True, slots=True)
class Not:
    """A negated predicate: ``!%p1``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand ``_``: a result that is thrown away."""


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``: several values loaded, stored, packed or unpacked at once."""

    elements: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``: two results of one instruction."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``; ``base`` None for a constant address."""

    base: Register | Symbol | None
    offset: int


Value: TypeAlias = "Register | Integer | Float | Special | Symbol | Sink"
Operand: TypeAlias = "Value | Not | Vector | Pair | Address"


@dataclass(frozen=True, slots=True)
class Guard:
    """``@%p`` or, negated, ``@!%p``: the threads that take part."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: ``ld.global.v4.f32`` has opcode ``ld`` and modifiers ``global``, ``v4``, ``f32``."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    place: Place

    @property
    def name(self) -> str:
        """Opcode and modifiers, as written."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel's parameter: its place in the block of parameters."""

    name: str
    type: Type
    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory. ``space``: shared, local, global or const. ``nbytes`` 0: extern, as large as the
    launch says. ``initial``: its bytes, all of them, zeros where the text gives global or constant variables
    none; None for shared and local ones, which begin without a value."""

    name: str
    space: str
    alignment: int
    nbytes: int
    initial: bytes | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """An entry.

    ``registers``: in the order in which instructions first name them; two may have one name, of scopes apart.
    ``labels``: index into ``instructions`` of what each label stands before (the number of instructions for
    one at the end). ``max_threads``: ``.maxntid`` or None; ``required_threads``: ``.reqntid``, the size that
    every block of a launch must have, or None.
    """

    name: str
    parameters: tuple[Parameter, ...]
    registers: tuple[Register, ...]
    variables: tuple[Variable, ...]
    instructions: tuple[Instruction, ...]
    labels: Mapping[str, int]
    max_threads: tuple[int, int, int] | None
    required_threads: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class Module:
    """A whole text. ``version``: of PTX, (8, 8). ``target``: ``sm_90``. ``variables``: outside of kernels."""

    version: tuple[int, int]
    target: str
    kernels: Mapping[str, Kernel]
    variables: tuple[Variable, ...]
