"""setp, set, selp and slct: every comparison, NaNs, predicates."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable

import numpy as np
import pytest

from solvergen.errors import PtxError
from tests.support.exact import single
from tests.support.ptx_instructions import compute, decoded, evaluate, instruction, pair, register

ORDER: dict[str, Callable[[float, float], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}
SAME = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
LIMITS = {
    f"{kind}{bits}": (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if kind == "s" else (0, (1 << bits) - 1)
    for kind in "sub"
    for bits in (16, 32, 64)
}


def columns(values: list[float]) -> tuple[list[float], list[float]]:
    a, b = zip(*itertools.product(values, values), strict=True)
    return list(a), list(b)


@pytest.mark.parametrize("name", [*ORDER, *SAME])
@pytest.mark.parametrize("type", LIMITS)
def test_integers(type: str, name: str) -> None:
    low, high = LIMITS[type]
    if (type[0] == "b" and name not in ("eq", "ne")) or (type[0] == "s" and name in SAME):
        with pytest.raises(PtxError):
            decoded(instruction(f"setp.{name}.{type}", sources=2))
        return
    a, b = columns([low, low + 1, high // 2, high // 2 + 1, high - 1, high, 0, 5])
    compare = ORDER[SAME.get(name, name)]
    assert compute(f"setp.{name}.{type}", a, b) == [compare(x, y) for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("name", [*ORDER, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"])
@pytest.mark.parametrize("type", ["f32", "f64"])
def test_floats(type: str, name: str) -> None:
    a, b = columns(
        [math.nan, -math.inf, -1.5, -0.0, 0.0, 2.0**-140 if type == "f32" else 5e-324, 1.0, math.inf]
    )
    found = compute(f"setp.{name}.{type}", a, b)
    for x, y, holds in zip(a, b, found, strict=True):
        unordered = math.isnan(x) or math.isnan(y)
        if name in ("num", "nan"):
            assert holds == (unordered == (name == "nan"))
        elif unordered:
            assert holds == (len(name) == 3), (x, y)
        else:
            assert holds == ORDER[name[:2]](x, y), (x, y)


def test_a_value_compared_with_itself() -> None:
    operation = decoded(instruction("setp.nan.f32", register(), register(), register()))
    a = np.array([1.0, math.nan, math.inf], np.float32)
    (found,) = evaluate(operation, [a, a])
    assert found.tolist() == [False, True, False]


def test_ftz() -> None:
    least, zero, negative = [1], [0], [0x80000001]
    for name, expected in (("gt", [1, 0]), ("eq", [0, 1])):
        plain = bits_of_predicate(f"setp.{name}.f32", least, zero)
        flushed = bits_of_predicate(f"setp.{name}.ftz.f32", least, zero)
        assert [plain, flushed] == [bool(e) for e in expected]
    assert not bits_of_predicate("setp.lt.ftz.f32", negative, zero)


def bits_of_predicate(name: str, a: list[int], b: list[int]) -> bool:
    (found,) = compute(name, [single(x) for x in a], [single(x) for x in b])
    assert isinstance(found, bool)
    return found


def test_combined_with_a_predicate() -> None:
    a, b = [1, 1, 2, 2], [2, 2, 1, 1]
    c = [True, False, True, False]
    less = [True, True, False, False]
    joins: dict[str, Callable[[bool, bool], bool]] = {
        "and": operator.and_,
        "or": operator.or_,
        "xor": operator.xor,
    }
    for name, join in joins.items():
        first = [join(x, y) for x, y in zip(less, c, strict=True)]
        second = [join(not x, y) for x, y in zip(less, c, strict=True)]
        assert compute(f"setp.lt.{name}.s32", a, b, c) == first
        assert compute(f"setp.lt.{name}.s32", a, b, c, destination=pair()) == [first, second]


def test_two_results() -> None:
    assert compute("setp.ge.u32", [1, 2], [2, 2], destination=pair()) == [[False, True], [True, False]]
    # The second is the complement, of a comparison with a NaN, too.
    assert compute("setp.lt.f32", [math.nan], [1.0], destination=pair()) == [[False], [True]]


def test_set() -> None:
    a, b = [1, 2, 3], [2, 2, 2]
    assert compute("set.lt.u32.s32", a, b) == [0xFFFFFFFF, 0, 0]
    assert compute("set.ge.s32.u16", a, b) == [0, -1, -1]
    assert compute("set.ne.f32.b64", a, b) == [1.0, 0.0, 1.0]
    assert compute("set.gtu.f32.f64", [math.nan, 1.0], [0.0, 2.0]) == [1.0, 0.0]
    assert compute("set.eq.or.u32.s32", a, b, [True, False, False]) == [0xFFFFFFFF, 0xFFFFFFFF, 0]
    assert compute("set.eq.ftz.u32.f32", [single(1)], [0.0]) == [0xFFFFFFFF]


@pytest.mark.parametrize(
    "type", ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]
)
def test_selection(type: str) -> None:
    p = [True, False, True]
    assert compute(f"selp.{type}", [1, 2, 3], [4, 5, 6], p) == [1, 5, 3]
    assert compute(f"selp.{type}", [1], [4], p) == [1, 4, 1]
    assert compute(f"selp.{type}", [1, 2, 3], [4], [False]) == [4, 4, 4]
    assert compute(f"slct.{type}.s32", [1, 2, 3], [4, 5, 6], [0, -1, 2**31 - 1]) == [1, 5, 3]


def test_selection_keeps_bits() -> None:
    nans = [0x7F800001, 0xFFC12345]
    operation = decoded(instruction("selp.b32", sources=3))
    assert [t.name for t in operation.sources] == ["b32", "b32", "pred"]
    assert compute("selp.b32", nans, [0], [True]) == nans


def test_selection_by_the_sign_of_a_float() -> None:
    c = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, single(0x80000001)]
    a, b = [1] * 8, [2] * 8
    assert compute("slct.u64.f32", a, b, c) == [1, 1, 1, 2, 2, 1, 2, 2]
    assert compute("slct.ftz.u64.f32", a, b, c) == [1, 1, 1, 2, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("setp.s32", 2),
        ("setp.lt.s8", 2),
        ("setp.lt.f16", 2),
        ("setp.ltu.s32", 2),
        ("setp.lo.f32", 2),
        ("setp.lt.ftz.f64", 2),
        ("setp.lt.nor.s32", 3),
        ("setp.lt.and.s32", 2),
        ("setp.lt.s32", 3),
        ("set.lt.s32", 2),
        ("set.lt.u64.s32", 2),
        ("set.lt.f64.f64", 2),
        ("selp.pred", 3),
        ("selp.b8", 3),
        ("selp.b32", 2),
        ("slct.f32", 3),
        ("slct.f32.f64", 3),
        ("slct.ftz.f32.s32", 3),
    ],
)
def test_what_does_not_exist(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=sources))
