"""Integer arithmetic: add sub mul mad mul24 mad24 sad div rem abs neg min max.

PTX ISA, "Integer Arithmetic Instructions". Everything wraps around unless ``.sat`` says to clamp. The
condition code register (``add.cc``, ``addc`` and so on) isn't modelled: those are errors.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.operation import Compute, Decoder, Form, Operation
from solvergen.runtime.ptx.types import TYPES, Type

INTEGERS = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED = ("s16", "s32", "s64")

Binary = Callable[[HostArray, HostArray], HostArray]


def wider(type: Type) -> Type:
    """The type of twice the width that holds the products of ``type``."""
    return TYPES[f"{type.name[0]}{2 * type.bits}"]


def _clamped(operation: Binary) -> Binary:
    """``operation`` on s32 with the result clamped to s32."""
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max

    def compute(a: HostArray, b: HostArray) -> HostArray:
        return np.clip(operation(a.astype(np.int64), b.astype(np.int64)), low, high).astype(np.int32)

    return compute


def _sum(operation: Binary) -> Decoder:
    """add and sub, with ``.sat`` for s32."""

    def decode(form: Form) -> Operation:
        type = form.type(*INTEGERS)
        if form.flag("sat"):
            if type.name != "s32":
                form.unknown(".sat")
            return form.operation(_clamped(operation), (type, type), type)
        return form.operation(operation, (type, type), type)

    return decode


add = _sum(np.add)
sub = _sum(np.subtract)


def high_product(type: Type) -> Binary:
    """The upper half of the product."""
    if type.bits == 64:
        return _high64_signed if type.kind == "signed" else _high64
    double, shift = wider(type).dtype, type.bits

    def compute(a: HostArray, b: HostArray) -> HostArray:
        product: HostArray = np.multiply(a, b, dtype=double)
        return (product >> shift).astype(type.dtype)

    return compute


def _high64(a: HostArray, b: HostArray) -> HostArray:
    """Upper 64 of the 128 bits of an unsigned product, from products of 32-bit halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    middle = a_high * b_low + (a_low * b_low >> half)
    other = a_low * b_high + (middle & mask)
    result: HostArray = a_high * b_high + (middle >> half) + (other >> half)
    return result


def _high64_signed(a: HostArray, b: HostArray) -> HostArray:
    """As ``_high64``; a negative factor counts 2**64 too much there, so the other is taken off again."""
    high = _high64(a.view(np.uint64), b.view(np.uint64)).view(np.int64)
    return high - np.where(a < 0, b, np.int64(0)) - np.where(b < 0, a, np.int64(0))


def _product(form: Form, type: Type) -> tuple[Binary, Type]:
    """What ``.lo``, ``.hi`` or ``.wide`` of ``form`` multiplies, and the type of the result."""
    mode = form.needs("lo", "hi", "wide")
    if mode == "lo":
        return np.multiply, type
    if mode == "hi":
        return high_product(type), type
    if type.bits == 64:
        form.unknown(".wide")
    return partial(np.multiply, dtype=wider(type).dtype), wider(type)


def mul(form: Form) -> Operation:
    """``mul.lo``, ``mul.hi``: half of the product; ``mul.wide``: all of it, in a type twice as wide."""
    type = form.type(*INTEGERS)
    compute, result = _product(form, type)
    return form.operation(compute, (type, type), result)


def mad(form: Form) -> Operation:
    """``mad``: as ``mul``, plus the third operand; ``mad.hi.sat.s32`` clamps the sum."""
    type = form.type(*INTEGERS)
    hi = "hi" in form.instruction.modifiers
    multiply, result = _product(form, type)
    total: Binary = np.add
    if form.flag("sat"):
        if not hi or type.name != "s32":
            form.unknown(".sat")
        total = _clamped(np.add)

    def compute(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        return total(multiply(a, b), c)

    return form.operation(compute, (type, type, result), result)


def _product24(form: Form, type: Type) -> Binary:
    """The product of the low 24 bits of both: its bits 0 to 31 or, for ``.hi``, 16 to 47."""
    shift = 16 if form.needs("lo", "hi") == "hi" else 0
    double = wider(type).dtype

    def compute(a: HostArray, b: HostArray) -> HostArray:
        # Shifting up and down again takes 24 bits and extends their sign.
        product: HostArray = np.multiply(a << 8 >> 8, b << 8 >> 8, dtype=double)
        return (product >> shift).astype(type.dtype)

    return compute


def mul24(form: Form) -> Operation:
    """``mul24.lo``, ``mul24.hi``: of the 48 bits of a product of 24-bit integers the lower or upper 32."""
    type = form.type("u32", "s32")
    return form.operation(_product24(form, type), (type, type), type)


def mad24(form: Form) -> Operation:
    """``mad24``: as ``mul24``, plus the third operand; ``mad24.hi.sat.s32`` clamps the sum."""
    type = form.type("u32", "s32")
    hi = "hi" in form.instruction.modifiers
    multiply = _product24(form, type)
    total: Binary = np.add
    if form.flag("sat"):
        if not hi or type.name != "s32":
            form.unknown(".sat")
        total = _clamped(np.add)
    return form.operation(lambda a, b, c: total(multiply(a, b), c), (type, type, type), type)


def sad(form: Form) -> Operation:
    """``sad d, a, b, c``: c + abs(a - b), without overflow in between."""
    type = form.type(*INTEGERS)
    compute: Compute = lambda a, b, c: c + (np.maximum(a, b) - np.minimum(a, b))  # noqa: E731
    return form.operation(compute, (type, type, type), type)


def _quotient(a: HostArray, b: HostArray) -> HostArray:
    """a / b towards zero. By zero the ISA says nothing; all ones here, as devices give."""
    exact = a - np.fmod(a, b)
    return np.where(b == 0, np.array(-1).astype(a.dtype), exact // b)


def _remainder(a: HostArray, b: HostArray) -> HostArray:
    """What ``_quotient`` leaves, with the sign of a. By zero the ISA says nothing; a here."""
    return np.where(b == 0, a, np.fmod(a, b))


def div(form: Form) -> Operation:
    """``div``: the quotient towards zero; a machine's own value if the divisor is 0 (here all ones)."""
    type = form.type(*INTEGERS)
    return form.operation(_quotient, (type, type), type)


def rem(form: Form) -> Operation:
    """``rem``: the remainder, signed as the dividend; a machine's own value if the divisor is 0 (here a)."""
    type = form.type(*INTEGERS)
    return form.operation(_remainder, (type, type), type)


def abs(form: Form) -> Operation:
    """``abs``: the absolute value; of the least integer itself."""
    type = form.type(*SIGNED)
    return form.operation(np.absolute, (type,), type)


def neg(form: Form) -> Operation:
    """``neg``: the negative; of the least integer itself."""
    type = form.type(*SIGNED)
    return form.operation(np.negative, (type,), type)


def _extremum(operation: Binary) -> Decoder:
    def decode(form: Form) -> Operation:
        type = form.type(*INTEGERS)
        if form.flag("relu"):
            if type.name != "s32":
                form.unknown(".relu")
            return form.operation(lambda a, b: np.maximum(operation(a, b), np.int32(0)), (type, type), type)
        return form.operation(operation, (type, type), type)

    return decode


min = _extremum(np.minimum)
max = _extremum(np.maximum)
