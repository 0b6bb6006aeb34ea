"""Counting, finding, extracting, inserting and permuting bits, against the ISA's loops over bits."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from solvergen.errors import PtxError
from tests.support.ptx_instructions import compute, decoded, instruction

RANDOM = Random(6)


def words(bits: int) -> list[int]:
    top = (1 << bits) - 1
    found = {0, 1, 2, 3, top, top - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x12345678, 0x80000001}
    found |= {1 << k for k in range(bits)} | {(1 << k) - 1 for k in range(bits)}
    found |= {RANDOM.randint(0, top) for _ in range(20)}
    return sorted(v for v in found if v <= top)


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


@pytest.mark.parametrize("bits", [32, 64])
def test_counts(bits: int) -> None:
    values = words(bits)
    assert compute(f"popc.b{bits}", values) == [bin(v).count("1") for v in values]
    assert compute(f"clz.b{bits}", values) == [bits - v.bit_length() for v in values]
    assert compute(f"brev.b{bits}", values) == [int(f"{v:0{bits}b}"[::-1], 2) for v in values]


@pytest.mark.parametrize("bits", [32, 64])
def test_found_bits(bits: int) -> None:
    values = words(bits)
    last = [v.bit_length() - 1 if v else 0xFFFFFFFF for v in values]
    assert compute(f"bfind.u{bits}", values) == last
    shifts = [bits - 1 - p if p != 0xFFFFFFFF else p for p in last]
    assert compute(f"bfind.shiftamt.u{bits}", values) == shifts
    numbers = [signed(v, bits) for v in values]
    last = [(n if n >= 0 else ~n).bit_length() - 1 for n in numbers]
    assert compute(f"bfind.s{bits}", numbers) == [p & 0xFFFFFFFF for p in last]
    shifts = [bits - 1 - p if p >= 0 else 0xFFFFFFFF for p in last]
    assert compute(f"bfind.shiftamt.s{bits}", numbers) == shifts


PLACES = [0, 1, 7, 8, 30, 31, 32, 33, 62, 63, 64, 65, 128, 255]


def extracted(a: int, pos: int, length: int, bits: int, sign: bool) -> int:
    """Bit by bit, as the manual has it."""
    msb = bits - 1
    extension = (a >> min(pos + length - 1, msb)) & 1 if sign and length else 0
    result = 0
    for i in range(bits):
        result |= ((a >> (pos + i)) & 1 if i < length and pos + i <= msb else extension) << i
    return result


@pytest.mark.parametrize("bits", [32, 64])
def test_extracted_fields(bits: int) -> None:
    values = [0, (1 << bits) - 1, 1 << (bits - 1), 0x0123456789ABCDEF & ((1 << bits) - 1), 0x5A5A5A5A]
    rows = list(itertools.product(values, PLACES, PLACES))
    a, b, c = map(list, zip(*rows, strict=True))
    assert compute(f"bfe.u{bits}", a, b, c) == [extracted(*row, bits, False) for row in rows]
    expected = [signed(extracted(*row, bits, True), bits) for row in rows]
    assert compute(f"bfe.s{bits}", [signed(x, bits) for x in a], b, c) == expected
    # Only eight bits of position and length count.
    assert compute(f"bfe.u{bits}", [0xABCD], [256 + 4], [512 + 8]) == [0xBC]


def inserted(a: int, b: int, pos: int, length: int, bits: int) -> int:
    for i in range(length):
        if pos + i < bits:
            b = b & ~(1 << (pos + i)) | ((a >> i & 1) << (pos + i) if i < bits else 0)
    return b


@pytest.mark.parametrize("bits", [32, 64])
def test_inserted_fields(bits: int) -> None:
    top = (1 << bits) - 1
    rows = list(itertools.product([0, top, 0x12345678], [0, top, 0x0F0F0F0F], PLACES, PLACES))
    columns = map(list, zip(*rows, strict=True))
    assert compute(f"bfi.b{bits}", *columns) == [inserted(*row, bits) for row in rows]


def test_masks() -> None:
    rows = list(itertools.product(PLACES, PLACES))
    a, b = map(list, zip(*rows, strict=True))
    clamped = [(((1 << y) - 1) << x) & 0xFFFFFFFF for x, y in rows]
    assert compute("bmsk.clamp.b32", a, b) == clamped
    wrapped = [(((1 << y % 32) - 1) << x % 32) & 0xFFFFFFFF for x, y in rows]
    assert compute("bmsk.wrap.b32", a, b) == wrapped
    assert compute("bmsk.wrap.b32", [1], [2]) == [6]


def test_extension() -> None:
    values, counts = [0x89ABCDEF, 0x7FFFFFFF, 0xFFFFFFFF, 0x00000080], [0, 1, 7, 8, 16, 31, 32, 33, 40, 255]
    rows = list(itertools.product(values, counts))
    a, b = map(list, zip(*rows, strict=True))
    for mode in ("clamp", "wrap"):
        n = [min(x, 32) if mode == "clamp" else x % 32 for x in b]
        low = [x & ((1 << k) - 1) for x, k in zip(a, n, strict=True)]
        assert compute(f"szext.{mode}.u32", a, b) == low
        expected = [v - (1 << k) if k and v >> (k - 1) else v for v, k in zip(low, n, strict=True)]
        assert compute(f"szext.{mode}.s32", [signed(x, 32) for x in a], b) == expected


def permuted(a: int, b: int, selector: int) -> int:
    pool = (b << 32 | a).to_bytes(8, "little")
    result = []
    for place in range(4):
        digit = selector >> (4 * place) & 15
        byte = pool[digit & 7]
        result.append((0xFF if byte & 0x80 else 0) if digit & 8 else byte)
    return int.from_bytes(bytes(result), "little")


A, B = 0x83020180, 0x07868504


def test_permutations() -> None:
    selectors = [RANDOM.randrange(1 << 16) for _ in range(300)] + [
        0x3210,
        0x7654,
        0x0123,
        0x4180,
        0x1054,
        0x5432,
    ]
    expected = [permuted(A, B, s) for s in selectors]
    columns = [A] * len(selectors), [B] * len(selectors)
    assert compute("prmt.b32", *columns, selectors) == expected
    # What stands above the four digits doesn't matter.
    assert compute("prmt.b32", *columns, [s | 0xABCD0000 for s in selectors]) == expected


def test_constant_permutations() -> None:
    """Decoded into shifts and masks: every one without signs, and some with."""
    digits = itertools.product(range(8), repeat=4)
    selectors = [sum(d << (4 * k) for k, d in enumerate(four)) for four in digits]
    selectors += [RANDOM.randrange(1 << 16) | 0x8 for _ in range(100)]
    for selector in selectors:
        found = compute("prmt.b32", [A, B], [B, A], [selector], constants=[None, None, selector])
        assert found == [permuted(A, B, selector), permuted(B, A, selector)], hex(selector)


MODES = {  # the manual's table: the bytes of the result from the highest to the lowest
    "f4e": ["3210", "4321", "5432", "6543"],
    "b4e": ["5670", "6701", "7012", "0123"],
    "rc8": ["0000", "1111", "2222", "3333"],
    "ecl": ["3210", "3211", "3222", "3333"],
    "ecr": ["0000", "1110", "2210", "3210"],
    "rc16": ["1010", "3232", "1010", "3232"],
}


@pytest.mark.parametrize("mode", MODES)
def test_permutations_by_mode(mode: str) -> None:
    expected = [permuted(A, B, int(MODES[mode][c & 3], 16)) for c in range(8)]
    assert compute(f"prmt.b32.{mode}", [A] * 8, [B] * 8, list(range(8))) == expected
    for c in range(8):
        assert compute(f"prmt.b32.{mode}", [A], [B], [c], constants=[None, None, c]) == [expected[c]]


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("popc.u32", 1),
        ("clz.b16", 1),
        ("brev.u32", 1),
        ("bfind.b32", 1),
        ("bfe.b32", 3),
        ("bfe.u16", 3),
        ("bfi.u32", 4),
        ("bfi.b32", 3),
        ("bmsk.b32", 2),
        ("szext.s32", 2),
        ("prmt.b64", 3),
        ("prmt.b32.xyz", 3),
        ("prmt.b32", 2),
    ],
)
def test_what_does_not_exist(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=sources))
