"""Bits as they are: and or xor not cnot lop3, and the shifts shl shr shf.

PTX ISA, "Logic and Shift Instructions". Predicates are bits, too. Amounts of shl and shr are unsigned 32-bit
integers; those past the width shift everything out.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.operation import Compute, Decoder, Form, Operation
from solvergen.runtime.ptx.module import Integer
from solvergen.runtime.ptx.types import TYPES

BITS = ("b16", "b32", "b64")
U32 = TYPES["u32"]


def _bitwise(operation: Callable[[HostArray, HostArray], HostArray]) -> Decoder:
    def decode(form: Form) -> Operation:
        type = form.type("pred", *BITS)
        return form.operation(operation, (type, type), type)

    return decode


and_ = _bitwise(np.bitwise_and)
or_ = _bitwise(np.bitwise_or)
xor = _bitwise(np.bitwise_xor)


def not_(form: Form) -> Operation:
    """``not``: every bit flipped."""
    type = form.type("pred", *BITS)
    return form.operation(np.invert, (type,), type)


def cnot(form: Form) -> Operation:
    """``cnot``: 1 for 0, else 0."""
    type = form.type(*BITS)
    return form.operation(lambda a: (a == 0).astype(type.dtype), (type,), type)


def constant(form: Form, index: int) -> int | None:
    """Operand ``index`` if it is an integer constant, as an unsigned 32-bit one."""
    operand = form.instruction.operands[index] if index < len(form.instruction.operands) else None
    return operand.value & 0xFFFFFFFF if isinstance(operand, Integer) else None


def shl(form: Form) -> Operation:
    """``shl``: left, filled with zeros."""
    type = form.type(*BITS)
    if type.bits == 16:
        # 16 by 32 bits would give 32.
        return form.operation(lambda a, n: np.left_shift(a, n).astype(np.uint16), (type, U32), type)
    return form.operation(np.left_shift, (type, U32), type)


def shr(form: Form) -> Operation:
    """``shr``: right; ``.s`` types fill with the sign, others with zeros."""
    type = form.type(*BITS, "u16", "u32", "u64", "s16", "s32", "s64")
    compute: Compute
    if type.kind == "signed":
        amount = constant(form, 2)
        last = type.bits - 1
        if amount is not None:
            compute = partial(_shifted, amount=np.array([amount if amount < last else last], type.dtype))
        else:
            compute = lambda a, n: np.right_shift(a, np.minimum(n, last).astype(type.dtype))  # noqa: E731
    elif type.bits == 16:
        compute = lambda a, n: np.right_shift(a, n).astype(np.uint16)  # noqa: E731
    else:
        compute = np.right_shift
    return form.operation(compute, (type, U32), type)


def _shifted(a: HostArray, _: HostArray, *, amount: HostArray) -> HostArray:
    return np.right_shift(a, amount)


def shf(form: Form) -> Operation:
    """``shf.l``/``shf.r d, a, b, c``: of b:a (b the upper half) shifted by c the upper or lower half.

    ``.wrap`` takes c modulo 32, ``.clamp`` at most 32.
    """
    left = form.needs("l", "r") == "l"
    clamp = form.needs("wrap", "clamp") == "clamp"
    type = form.type("b32")
    limit = np.uint32(32 if clamp else 31)
    bounded = np.minimum if clamp else np.bitwise_and

    def compute(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        both: HostArray = np.left_shift(b.astype(np.uint64), np.uint64(32)) | a
        n = bounded(c, limit)
        if left:
            both = np.right_shift(np.left_shift(both, n), np.uint64(32))
        else:
            both = np.right_shift(both, n)
        return both.astype(np.uint32)

    return form.operation(compute, (type, type, U32), type)


_TWO: tuple[Callable[[HostArray, HostArray], HostArray], ...] = (
    lambda b, c: np.zeros_like(b),
    lambda b, c: ~(b | c),
    lambda b, c: c & ~b,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: c | ~b,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: ~np.zeros_like(b),
)
"""The functions of two bits: bit 2*b + c of the index is the value."""


def lop3(form: Form) -> Operation:
    """``lop3 d, a, b, c, table``: bit 4*a + 2*b + c of the constant table, for each bit of a, b and c.

    ``lop3.or``, ``lop3.and`` with a second result, the predicate (d != 0) combined with a fifth source.
    """
    type = form.type("b32")
    combine = form.one_of("or", "and")
    table = constant(form, 4)
    if table is None or table > 255:
        form.fail(f"{form.instruction.name} needs a constant from 0 to 255 as its table")
    with_a, without_a = _TWO[table >> 4], _TWO[table & 15]

    def function(a: HostArray, b: HostArray, c: HostArray, _: HostArray) -> HostArray:
        return (a & with_a(b, c)) | (~a & without_a(b, c))

    if combine is None:
        return form.operation(function, (type, type, type, type), type)
    joined = np.logical_or if combine == "or" else np.logical_and

    def both(
        a: HostArray, b: HostArray, c: HostArray, _: HostArray, q: HostArray
    ) -> tuple[HostArray, HostArray]:
        d = function(a, b, c, _)
        return d, joined(d != 0, q)

    pred = TYPES["pred"]
    return form.operation(both, (type, type, type, type, pred), type, pred)
