"""Counting, finding, moving and permuting bits: popc clz bfind brev bfe bfi bmsk szext prmt.

PTX ISA, "Integer Arithmetic Instructions" and, for prmt, "Data Movement and Conversion Instructions".
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.logic import U32, constant
from solvergen.runtime.ptx.instructions.operation import Form, Operation


def popc(form: Form) -> Operation:
    """``popc``: how many bits are set."""
    type = form.type("b32", "b64")
    return form.operation(lambda a: np.bitwise_count(a).astype(np.uint32), (type,), U32)


def length(a: HostArray) -> HostArray:
    """The position of the highest bit set, from 1, as uint32; 0 for 0."""
    if a.dtype.itemsize == 8:
        upper = (a >> np.uint64(32)).astype(np.uint32)
        return np.where(upper != 0, length(upper) + np.uint32(32), length(a.astype(np.uint32)))
    return np.frexp(a.astype(np.float64))[1].astype(np.uint32)


def clz(form: Form) -> Operation:
    """``clz``: how many zeros stand before the highest bit that is set; the width for 0."""
    type = form.type("b32", "b64")
    return form.operation(lambda a: np.uint32(type.bits) - length(a), (type,), U32)


def bfind(form: Form) -> Operation:
    """``bfind``: the position of the highest bit that isn't the sign, from 0; all ones if there is none.

    ``.shiftamt``: how far to shift left to bring it to the top.
    """
    type = form.type("u32", "s32", "u64", "s64")
    from_top = form.flag("shiftamt")

    def compute(a: HostArray) -> HostArray:
        if type.kind == "signed":
            a = (a ^ (a >> (type.bits - 1))).view(f"u{type.nbytes}")
        count = length(a)
        if from_top:
            shift: HostArray = np.where(count == 0, np.uint32(0xFFFFFFFF), np.uint32(type.bits) - count)
            return shift
        position: HostArray = count - np.uint32(1)
        return position

    return form.operation(compute, (type,), U32)


def brev(form: Form) -> Operation:
    """``brev``: the bits in reverse order."""
    type = form.type("b32", "b64")
    steps = []
    width = type.bits // 2
    mask = 2**width - 1
    while width:
        steps.append((type.dtype.type(width), type.dtype.type(mask)))
        width //= 2
        mask ^= (mask << width) & (2**type.bits - 1) if width else 0

    def compute(a: HostArray) -> HostArray:
        for width, mask in steps:
            a = ((a >> width) & mask) | ((a & mask) << width)
        return a

    return form.operation(compute, (type,), type)


def bfe(form: Form) -> Operation:
    """``bfe d, a, b, c``: c bits of a from bit b on, extended by zeros or, for ``.s``, the field's sign.

    Only the low 8 bits of b and c count. Bits past the top are copies of the sign, or 0.
    """
    type = form.type("u32", "s32", "u64", "s64")
    bits = np.uint32(type.bits)
    unsigned = np.dtype(f"u{type.nbytes}")
    one = unsigned.type(1)

    def zeros(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        field = np.left_shift(one, c & 255) - one  # all ones from the width on
        found: HostArray = np.right_shift(a, b & 255) & field
        return found

    def signs(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        first, count = np.minimum(b & 255, bits), c & 255
        inside = np.minimum(count, bits - first)
        # Up against the top, then down again with the sign; a field beyond the top is the sign alone.
        up = np.left_shift(a.view(unsigned), bits - first - inside).view(type.dtype)
        down = np.minimum(bits - inside, bits - np.uint32(1)).astype(type.dtype)
        field = np.right_shift(np.where(inside == 0, a, up), down)
        result: HostArray = np.where(count == 0, type.dtype.type(0), field)
        return result

    return form.operation(signs if type.kind == "signed" else zeros, (type, U32, U32), type)


def bfi(form: Form) -> Operation:
    """``bfi f, a, b, c, d``: b with its d bits from bit c on replaced by the lowest of a.

    Only the low 8 bits of c and d count; what lies past the top is dropped.
    """
    type = form.type("b32", "b64")
    one = type.dtype.type(1)

    def compute(a: HostArray, b: HostArray, c: HostArray, d: HostArray) -> HostArray:
        first = c & 255
        mask = np.left_shift(np.left_shift(one, d & 255) - one, first)
        result: HostArray = (b & ~mask) | (np.left_shift(a, first) & mask)
        return result

    return form.operation(compute, (type, type, U32, U32), type)


def bmsk(form: Form) -> Operation:
    """``bmsk d, a, b``: b ones from bit a on. ``.wrap`` takes both modulo 32; ``.clamp`` as they are."""
    wrap = form.needs("wrap", "clamp") == "wrap"
    type = form.type("b32")
    one, low = np.uint32(1), np.uint32(31)

    def compute(a: HostArray, b: HostArray) -> HostArray:
        if wrap:
            a, b = a & low, b & low
        ones: HostArray = np.left_shift(one, b) - one
        return np.left_shift(ones, a)

    return form.operation(compute, (type, type), type)


def szext(form: Form) -> Operation:
    """``szext d, a, b``: the low b bits of a, extended by zeros or, for ``.s32``, the sign; 0 for none.

    ``.wrap`` takes b modulo 32; under ``.clamp`` 32 and more leave a as it is.
    """
    wrap = form.needs("wrap", "clamp") == "wrap"
    type = form.type("u32", "s32")
    bits = np.uint32(32)

    def compute(a: HostArray, b: HostArray) -> HostArray:
        count = b & np.uint32(31) if wrap else np.minimum(b, bits)
        away = np.minimum(bits - count, np.uint32(31)).astype(type.dtype)
        field = np.right_shift(np.left_shift(a, away), away)
        result: HostArray = np.where(count == 0, type.dtype.type(0), field)
        return result

    return form.operation(compute, (type, U32), type)


_MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}
"""The selector of the generic form that each mode stands for, by the low two bits of its third operand."""


def prmt(form: Form) -> Operation:
    """``prmt d, a, b, c``: four bytes out of the eight of b:a (byte 0 the lowest of a), chosen by c.

    A digit of four bits in c chooses each byte of the result, the lowest first: three bits its number, the
    fourth says to fill the byte with its sign instead. A mode replaces c by the digits of ``_MODES``.
    """
    mode = form.one_of(*_MODES)
    type = form.type("b32")
    selector = constant(form, 3)
    if selector is not None:
        selector = selector & 0xFFFF if mode is None else _MODES[mode][selector & 3]
        if selector & 0x8888 == 0:
            return form.operation(_fixed(selector), (type, type, type), type)
    table = None if mode is None else np.array(_MODES[mode], np.uint32)

    def compute(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        digits = c if table is None else table[c & 3]
        both = np.left_shift(b.astype(np.uint64), np.uint64(32)) | a
        result: HostArray = np.zeros(1, np.uint32)
        for place in range(4):
            digit = (digits >> (4 * place)) & 15
            byte = (np.right_shift(both, (digit & 7) * 8) & 255).astype(np.uint32)
            byte = np.where(digit & 8 != 0, (byte >> 7) * np.uint32(255), byte)
            result = result | (byte << (8 * place))
        return result

    return form.operation(compute, (type, type, type), type)


def _fixed(selector: int) -> Callable[[HostArray, HostArray, HostArray], HostArray]:
    """The permutation of a constant selector without signs: runs of bytes that stay together move at once."""
    runs: list[tuple[int, int, int]] = []  # first byte of the result, first byte chosen, how many
    for place in range(4):
        chosen = (selector >> (4 * place)) & 7
        if runs and chosen % 4 and chosen == runs[-1][1] + runs[-1][2]:
            runs[-1] = (runs[-1][0], runs[-1][1], runs[-1][2] + 1)
        else:
            runs.append((place, chosen, 1))
    pieces = [_piece(place, chosen % 4, count) for place, chosen, count in runs]
    second = [chosen >= 4 for _, chosen, _ in runs]

    def compute(a: HostArray, b: HostArray, _: HostArray) -> HostArray:
        result = pieces[0](b if second[0] else a)
        for piece, of_second in zip(pieces[1:], second[1:], strict=True):
            result = np.bitwise_or(result, piece(b if of_second else a))
        return result

    return compute


def _piece(place: int, chosen: int, count: int) -> Callable[[HostArray], HostArray]:
    """What moves ``count`` bytes from ``chosen`` to ``place``, all others zero."""
    steps: list[tuple[Callable[[HostArray, HostArray], HostArray], HostArray]] = []
    down, up, top = 8 * chosen, 8 * place, place + count == 4
    if down:
        steps.append((np.right_shift, np.array([down], np.uint32)))
    if chosen + count < 4 and not (top and up >= 8 * (4 - count)):
        steps.append((np.bitwise_and, np.array([2 ** (8 * count) - 1], np.uint32)))
    if up:
        steps.append((np.left_shift, np.array([up], np.uint32)))

    def move(value: HostArray) -> HostArray:
        for step, operand in steps:
            value = step(value, operand)
        return value

    return move
