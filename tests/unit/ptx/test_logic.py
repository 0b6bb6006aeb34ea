"""Logic and shifts of PTX, against Python's integers bit by bit."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from solvergen.errors import PtxError
from tests.support.ptx_instructions import compute, decoded, instruction, pair, register

BITS = ("b16", "b32", "b64")


def numbers(bits: int) -> list[int]:
    top = (1 << bits) - 1
    random = Random(5)
    return [0, 1, 2, top, top - 1, 1 << (bits - 1), 0x5A5A % top, *(random.randint(0, top) for _ in range(6))]


@pytest.mark.parametrize("type", BITS)
def test_bitwise(type: str) -> None:
    bits = int(type[1:])
    mask = (1 << bits) - 1
    a, b = map(list, zip(*itertools.product(numbers(bits), numbers(bits)), strict=True))
    assert compute(f"and.{type}", a, b) == [x & y for x, y in zip(a, b, strict=True)]
    assert compute(f"or.{type}", a, b) == [x | y for x, y in zip(a, b, strict=True)]
    assert compute(f"xor.{type}", a, b) == [x ^ y for x, y in zip(a, b, strict=True)]
    assert compute(f"not.{type}", a) == [x ^ mask for x in a]
    assert compute(f"cnot.{type}", a) == [int(x == 0) for x in a]


def test_predicates() -> None:
    a, b = [False, False, True, True], [False, True, False, True]
    assert compute("and.pred", a, b) == [False, False, False, True]
    assert compute("or.pred", a, b) == [False, True, True, True]
    assert compute("xor.pred", a, b) == [False, True, True, False]
    assert compute("not.pred", a) == [True, True, False, False]


AMOUNTS = [0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 2**31 - 1, 2**31, 2**32 - 1]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("type", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"])
def test_shifts(type: str, constant: bool) -> None:
    bits = int(type[1:])
    values = numbers(bits)
    if type[0] == "s":
        values = [v - (1 << bits) if v >> (bits - 1) else v for v in values]
    for amount in AMOUNTS:
        n = [amount] if constant else [amount] * len(values)
        constants = [None, amount if constant else None]
        right = compute(f"shr.{type}", values, n, constants=constants)
        assert right == [v >> min(amount, bits) for v in values], amount
        if type[0] == "b":
            left = compute(f"shl.{type}", values, n, constants=constants)
            assert left == [v << min(amount, bits) & ((1 << bits) - 1) for v in values], amount


def test_shifts_by_a_negative_constant() -> None:
    # As 32 bits it is far beyond the width.
    assert compute("shr.s32", [-8, 8], [2**32 - 1], constants=[None, -1]) == [-1, 0]


@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shifts(mode: str) -> None:
    rows = list(itertools.product([0x12345678, 0, 0xFFFFFFFF], [0x9ABCDEF0, 0x80000001], AMOUNTS))
    a, b, c = map(list, zip(*rows, strict=True))
    amounts = [x % 32 if mode == "wrap" else min(x, 32) for x in c]
    whole = [y << 32 | x for x, y in zip(a, b, strict=True)]
    left = [(w << n >> 32) & 0xFFFFFFFF for w, n in zip(whole, amounts, strict=True)]
    right = [(w >> n) & 0xFFFFFFFF for w, n in zip(whole, amounts, strict=True)]
    assert compute(f"shf.l.{mode}.b32", a, b, c) == left
    assert compute(f"shf.r.{mode}.b32", a, b, c) == right


def test_every_table_of_three() -> None:
    # One bit of each lane's words for each of the eight combinations.
    a, b, c = [0xF0F0F0F0], [0xCCCCCCCC], [0xAAAAAAAA]
    for table in range(256):
        found = compute("lop3.b32", a, b, c, [table], constants=[None, None, None, table])
        assert found == [table * 0x01010101], table


def test_tables_with_a_predicate() -> None:
    table, constants = [0x80], [None, None, None, 0x80, None]
    a, b, c, q = [6, 1, 6, 1], [5, 2, 5, 2], [4, 4, 4, 4], [True, True, False, False]
    both = compute("lop3.and.b32", a, b, c, table, q, constants=constants, destination=pair())
    assert both == [[4, 0, 4, 0], [True, False, False, False]]
    either = compute("lop3.or.b32", a, b, c, table, q, constants=constants, destination=pair())
    assert either == [[4, 0, 4, 0], [True, True, True, False]]


@pytest.mark.parametrize("table", [256, -1, None])
def test_tables_are_constants_of_eight_bits(table: int | None) -> None:
    operand = register() if table is None else table
    with pytest.raises(PtxError, match="needs a constant from 0 to 255"):
        decoded(instruction("lop3.b32", *[register()] * 4, operand))


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("and.u32", 2),
        ("and.b8", 2),
        ("xor.f32", 2),
        ("shl.s32", 2),
        ("shl.b8", 2),
        ("shl.wrap.b32", 2),
        ("shr.f32", 2),
        ("shf.l.b32", 3),
        ("shf.wrap.b32", 3),
        ("shf.l.wrap.b64", 3),
        ("cnot.pred", 1),
        ("not.b32", 2),
    ],
)
def test_what_does_not_exist(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=sources))
