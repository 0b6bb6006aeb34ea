"""Which buffer each access of an update's kernel goes to, found by where its address comes from.

A pass over the elements takes the buffers' addresses from its table of pointers, its first parameter. What is
added to such an address, or selected among several, still points into that buffer; what is only computed from
an address (which part of a word it is) doesn't.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvergen.runtime.ptx.module import Address, Instruction, Kernel, Register, Symbol, Vector

_POINTER = 8
TOTALS = (7,)
"""Which parameter of a pass over chunks takes their totals."""
TILE_TOTALS = (12, 13)
"""Which parameters of a pass over tiles take those of rows and of columns."""
_KEEP = frozenset({"mov", "add", "sub", "cvta", "selp", "mad", "min", "max"})
"""Operations whose result points to where an operand does."""


@dataclass(frozen=True, slots=True)
class Access:
    """A load or store of global memory.

    ``buffer``: the index of the buffer; None if it is no buffer but one of the launch's tables (of which a
    pass writes the totals of its chunks or tiles only), -1 if that can't be told. ``elements``: how many
    values at once, each of ``bits``.
    """

    index: int
    instruction: Instruction
    kind: str
    buffer: int | None
    elements: int
    bits: int
    table: str = ""
    """Of an access to a table of the launch: the parameter that names it, if just one does."""

    @property
    def nbytes(self) -> int:
        """Bytes that it moves."""
        return self.elements * self.bits // 8


def accesses(kernel: Kernel, buffers: int, totals: Sequence[int] = TOTALS) -> tuple[Access, ...]:
    """The accesses to global memory, in the order of the text. ``buffers``: how many there are. ``totals``:
    which parameters take totals."""
    origins = _origins(kernel)
    writable = [{kernel.parameters[i].name} for i in totals if i < len(kernel.parameters)]
    found = []
    for index, instruction in enumerate(kernel.instructions):
        if instruction.opcode not in ("ld", "st") or "global" not in instruction.modifiers:
            continue
        address = next(o for o in instruction.operands if isinstance(o, Address))
        base = address.base
        known = origins.get(base.slot, frozenset()) if isinstance(base, Register) else frozenset()
        pointed = {o for o in known if isinstance(o, int)}
        if len(pointed) > 1 or any(not 0 <= b < buffers for b in pointed):
            buffer: int | None = -1
        elif pointed:
            (buffer,) = pointed
        else:
            # All tables but those of totals are only read.
            allowed = instruction.opcode != "st" or known in writable
            buffer = None if known and allowed else -1
        names = [origin for origin in known if isinstance(origin, str)]
        table = names[0] if buffer is None and len(names) == 1 else ""
        found.append(Access(index, instruction, instruction.opcode, buffer, *_width(instruction), table))
    return tuple(found)


def _width(instruction: Instruction) -> tuple[int, int]:
    """Values at once, and bits of each."""
    vector = next((int(m[1:]) for m in instruction.modifiers if m in ("v2", "v4", "v8")), 1)
    return vector, int("".join(filter(str.isdigit, instruction.modifiers[-1])))


Origin = int | str
"""What a register's value comes from: the buffer of that index, or the parameter of that name."""


def _origins(kernel: Kernel) -> dict[int, frozenset[Origin]]:
    """For each register, by its slot, what it points into."""
    table = kernel.parameters[0].name if kernel.parameters else ""
    found: dict[int, frozenset[Origin]] = {}
    changed = True
    while changed:  # registers that go around a loop get theirs in the second round
        changed = False
        for instruction in kernel.instructions:
            for register, origins in _results(instruction, found, table):
                before = found.get(register.slot, frozenset())
                if not origins <= before:
                    found[register.slot] = before | origins
                    changed = True
    return found


def _results(
    instruction: Instruction, known: dict[int, frozenset[Origin]], table: str
) -> list[tuple[Register, frozenset[Origin]]]:
    """The 64-bit registers that an instruction writes, and what they point into because of it."""
    if not instruction.operands:
        return []
    first, *sources = instruction.operands
    written = first.elements if isinstance(first, Vector) else (first,)
    results = [r for r in written if isinstance(r, Register) and r.type.bits == 64]
    if not results:
        return []
    if instruction.opcode == "ld":
        return _loaded(instruction, written, known, table)
    if instruction.opcode not in _KEEP:
        return []
    origins: frozenset[Origin] = frozenset()
    for source in sources:
        if isinstance(source, Register):
            origins |= known.get(source.slot, frozenset())
    return [(r, origins) for r in results]


def _loaded(
    instruction: Instruction,
    written: tuple[object, ...],
    known: dict[int, frozenset[Origin]],
    table: str,
) -> list[tuple[Register, frozenset[Origin]]]:
    address = instruction.operands[1]
    assert isinstance(address, Address)
    if isinstance(address.base, Symbol):
        name: frozenset[Origin] = frozenset({address.base.name})
        return [(r, name) for r in written if isinstance(r, Register) and r.type.bits == 64]
    origins = known.get(address.base.slot, frozenset()) if isinstance(address.base, Register) else frozenset()
    found: list[tuple[Register, frozenset[Origin]]] = []
    for place, register in enumerate(written):
        if isinstance(register, Register) and register.type.bits == 64 and register.type.kind != "float":
            offset = address.offset + place * _POINTER
            if origins == {table} and offset % _POINTER == 0:
                found.append((register, frozenset({offset // _POINTER})))
    return found
