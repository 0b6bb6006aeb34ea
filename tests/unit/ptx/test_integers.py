"""Integer arithmetic of PTX, against Python's integers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random

import pytest

from solvergen.errors import PtxError
from tests.support.ptx_instructions import compute, decoded, instruction

TYPES = ("s16", "u16", "s32", "u32", "s64", "u64")


def limits(type: str) -> tuple[int, int]:
    bits = int(type[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def wrapped(value: int, type: str) -> int:
    low, high = limits(type)
    return (value - low) % (high - low + 1) + low


def clamped(value: int, type: str) -> int:
    low, high = limits(type)
    return min(max(value, low), high)


def pool(type: str) -> list[int]:
    low, high = limits(type)
    random = Random(4)
    values = {low, low + 1, high, high - 1, 0, 1, 2, 3, 7, -1, -2, -3, -7, high // 2, high // 2 + 1, low // 2}
    values |= {1 << (int(type[1:]) // 2), (1 << (int(type[1:]) // 2)) - 1}
    values |= {random.randint(low, high) for _ in range(8)}
    return sorted(v for v in values if low <= v <= high)


def pairs(type: str) -> tuple[list[int], list[int]]:
    first, second = zip(*itertools.product(pool(type), pool(type)), strict=True)
    return list(first), list(second)


def wide(type: str) -> str:
    return f"{type[0]}{2 * int(type[1:])}"


def truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name: str, type: str) -> None:
    a, b = pairs(type)
    expected = [wrapped(BINARY[name](x, y), type) for x, y in zip(a, b, strict=True)]
    assert compute(f"{name}.{type}", a, b) == expected


@pytest.mark.parametrize("type", TYPES)
def test_high_and_wide_products(type: str) -> None:
    a, b = pairs(type)
    bits = int(type[1:])
    products = [x * y for x, y in zip(a, b, strict=True)]
    assert compute(f"mul.hi.{type}", a, b) == [p >> bits for p in products]
    if bits < 64:
        assert compute(f"mul.wide.{type}", a, b) == products


@pytest.mark.parametrize("type", TYPES)
def test_products_and_sums(type: str) -> None:
    a, b = pairs(type)
    bits = int(type[1:])
    c = (pool(type) * len(a))[: len(a)]
    rows = list(zip(a, b, c, strict=True))
    assert compute(f"mad.lo.{type}", a, b, c) == [wrapped(x * y + z, type) for x, y, z in rows]
    assert compute(f"mad.hi.{type}", a, b, c) == [wrapped((x * y >> bits) + z, type) for x, y, z in rows]
    if bits < 64:
        c = (pool(wide(type)) * len(a))[: len(a)]
        rows = list(zip(a, b, c, strict=True))
        assert compute(f"mad.wide.{type}", a, b, c) == [wrapped(x * y + z, wide(type)) for x, y, z in rows]


def test_saturation() -> None:
    a, b = pairs("s32")
    c = (pool("s32") * len(a))[: len(a)]
    both = list(zip(a, b, strict=True))
    assert compute("add.sat.s32", a, b) == [clamped(x + y, "s32") for x, y in both]
    assert compute("sub.sat.s32", a, b) == [clamped(x - y, "s32") for x, y in both]
    expected = [clamped((x * y >> 32) + z, "s32") for x, y, z in zip(a, b, c, strict=True)]
    assert compute("mad.hi.sat.s32", a, b, c) == expected


@pytest.mark.parametrize("type", ["s32", "u32"])
def test_products_of_24_bits(type: str) -> None:
    a, b = pairs(type)
    c = (pool(type) * len(a))[: len(a)]
    short = f"{type[0]}24"
    products = [wrapped(x, short) * wrapped(y, short) for x, y in zip(a, b, strict=True)]
    high = [wrapped(p >> 16, type) for p in products]
    assert compute(f"mul24.lo.{type}", a, b) == [wrapped(p, type) for p in products]
    assert compute(f"mul24.hi.{type}", a, b) == high
    expected = [wrapped(p + z, type) for p, z in zip(products, c, strict=True)]
    assert compute(f"mad24.lo.{type}", a, b, c) == expected
    if type == "s32":
        assert compute("mad24.hi.sat.s32", a, b, c) == [
            clamped(h + z, type) for h, z in zip(high, c, strict=True)
        ]


@pytest.mark.parametrize("type", TYPES)
def test_sum_of_absolute_difference(type: str) -> None:
    a, b = pairs(type)
    c = (pool(type) * len(a))[: len(a)]
    expected = [wrapped(z + abs(x - y), type) for x, y, z in zip(a, b, c, strict=True)]
    assert compute(f"sad.{type}", a, b, c) == expected


@pytest.mark.parametrize("type", TYPES)
def test_quotients_and_remainders(type: str) -> None:
    a, b = pairs(type)
    ones, low = wrapped(-1, type), limits(type)[0]
    quotients, remainders = compute(f"div.{type}", a, b), compute(f"rem.{type}", a, b)
    for x, y, quotient, remainder in zip(a, b, quotients, remainders, strict=True):
        if y == 0:  # not defined; what this interpreter does
            assert (quotient, remainder) == (ones, x)
        else:
            exact = truncated(x, y)
            assert (quotient, remainder) == (wrapped(exact, type), x - exact * y), (x, y)
    if low:
        assert compute(f"div.{type}", [low], [-1]) == [low]


@pytest.mark.parametrize("type", ["s16", "s32", "s64"])
def test_sign(type: str) -> None:
    a = pool(type)
    assert compute(f"neg.{type}", a) == [wrapped(-x, type) for x in a]
    assert compute(f"abs.{type}", a) == [wrapped(abs(x), type) for x in a]


def test_relu() -> None:
    assert compute("min.relu.s32", [-5, 7, 3], [4, -9, 8]) == [0, 0, 3]
    assert compute("max.relu.s32", [-5, 7, -3], [-4, 9, 8]) == [0, 9, 8]


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("add.sat.u32", 2),
        ("add.cc.u32", 2),
        ("addc.u32", 2),
        ("addc.cc.u32", 2),
        ("sub.cc.s32", 2),
        ("subc.u32", 2),
        ("mad.lo.cc.u32", 3),
        ("madc.hi.u32", 3),
        ("add.u8", 2),
        ("add.b32", 2),
        ("add.u16x2", 2),
        ("mul.s32", 2),
        ("mul.wide.s64", 2),
        ("mul.lo.sat.s32", 2),
        ("mad.lo.sat.s32", 3),
        ("mad.hi.sat.u32", 3),
        ("mad24.lo.sat.s32", 3),
        ("mul24.wide.s32", 2),
        ("div.rn.s32", 2),
        ("neg.u32", 1),
        ("abs.u32", 1),
        ("min.relu.u32", 2),
        ("min.s16x2", 2),
        ("dp4a.u32.u32", 3),
        ("dp2a.lo.s32.s32", 3),
        ("fns.b32", 3),
        ("add.s32", 1),
        ("add", 2),
    ],
)
def test_what_does_not_exist_or_is_not_modelled(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=sources))
