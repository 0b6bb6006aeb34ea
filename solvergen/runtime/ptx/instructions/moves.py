"""mov: a value from one register to another, or between a register and the pieces of it.

PTX ISA, "Data Movement and Conversion Instructions: mov". The first element of a vector is the lowest bits.
"""

from __future__ import annotations

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.operation import Form, Operation
from solvergen.runtime.ptx.module import Vector
from solvergen.runtime.ptx.types import TYPES

MOVED = ("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")


def _itself(value: HostArray) -> HostArray:
    return value


def mov(form: Form) -> Operation:
    """``mov``: the value itself; ``mov.b32 {a, b}, c`` takes c apart, ``mov.b32 c, {a, b}`` puts it back."""
    operands = form.instruction.operands
    vectors = [operand for operand in operands if isinstance(operand, Vector)]
    if not vectors:
        type = form.type(*MOVED)
        return form.operation(_itself, (type,), type)
    whole = form.type("b16", "b32", "b64")
    count = len(vectors[0].elements)
    name = f"b{whole.bits // count}"
    if len(vectors) != 1 or count not in (2, 4) or name not in TYPES:
        form.unknown("these vectors")
    part = TYPES[name]
    shifts = [whole.dtype.type(part.bits * k) for k in range(count)]

    def unpacked(value: HostArray) -> tuple[HostArray, ...]:
        return tuple(np.right_shift(value, shift).astype(part.dtype) for shift in shifts)

    def packed(*parts: HostArray) -> HostArray:
        total = parts[0].astype(whole.dtype)
        for value, shift in zip(parts[1:], shifts[1:], strict=True):
            total = total | np.left_shift(value.astype(whole.dtype), shift)
        return total

    if isinstance(operands[0], Vector):
        return form.operation(unpacked, (whole,), *(part for _ in shifts))
    return form.operation(packed, tuple(part for _ in shifts), whole)
