"""Floating-point arithmetic of PTX, against rational arithmetic and the ISA's tables of special values."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from random import Random

import pytest

from solvergen.errors import PtxError
from tests.support.exact import DOUBLE, SINGLE, Format, double, double_bits, rounded, single, single_bits
from tests.support.ptx_instructions import bits_of, compute, decoded, instruction

MODES = ("rn", "rz", "rm", "rp")
NAN32, INF32, ZERO32, MINUS32 = 0x7FFFFFFF, 0x7F800000, 0, 0x80000000
INF64, MINUS64 = 0x7FF << 52, 1 << 63


def nasty(form: Format, seed: int, count: int) -> list[int]:
    """Bits of finite numbers: the ends of the range, around powers of two, subnormals, random."""
    top = form.infinity
    bits = [0, 1, 2, 3, (1 << (form.precision - 1)) - 1, 1 << (form.precision - 1), top - 1, top - 2]
    one = form.greatest << (form.precision - 1)
    bits += [
        one - 1,
        one,
        one + 1,
        one + 2,
        one + (1 << (form.precision - 1)),
        one + 3,
        one // 2,
        one // 2 + 1,
    ]
    random = Random(seed)
    bits += [random.randrange(top) for _ in range(count)]
    bits += [one + random.randrange(1 << (form.precision + 1)) for _ in range(count)]
    return bits + [b | form.sign for b in bits]


CASES = {"f32": (SINGLE, single), "f64": (DOUBLE, double)}


def zero_of_sum(a: Fraction, b: Fraction, negative: tuple[bool, bool], mode: str) -> bool:
    """Whether an exact zero sum is -0: if both are -0, or if rounding down and not both +0."""
    if a == 0 and b == 0 and negative[0] == negative[1]:
        return negative[0]
    return mode == "rm"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", CASES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_two_operands(name: str, type: str, mode: str) -> None:
    form, value = CASES[type]
    pool = nasty(form, 1, 6 if type == "f64" else 12)
    pairs = [(a, b) for a, b in itertools.product(pool, pool) if not (name == "div" and b in (0, form.sign))]
    found = bits_of(f"{name}.{mode}.{type}", *zip(*pairs, strict=True))
    for (a, b), bits in zip(pairs, found, strict=True):
        x, y = Fraction(value(a)), Fraction(value(b))
        negative = bool(a & form.sign), bool(b & form.sign)
        if name in ("add", "sub"):
            y, second = (y, negative[1]) if name == "add" else (-y, not negative[1])
            exact, minus = x + y, zero_of_sum(x, y, (negative[0], second), mode)
        else:
            exact, minus = (x * y if name == "mul" else x / y), negative[0] != negative[1]
        assert bits == rounded(exact, form, mode, negative_zero=minus), (name, mode, hex(a), hex(b))


def exact_root(value: Fraction, form: Format, mode: str) -> int:
    """The bits of the rounded square root: the digits by integers, a sticky bit below them."""
    scale = 2 * (form.precision + 2 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    scaled = value * Fraction(2) ** scale
    root = math.isqrt(math.floor(scaled))
    sticky = Fraction(0) if root * root == scaled else Fraction(1, 4)
    return rounded((root + sticky) / Fraction(2) ** (scale // 2), form, mode)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", CASES)
def test_square_roots(type: str, mode: str) -> None:
    form, value = CASES[type]
    positive = [bits for bits in nasty(form, 2, 200) if 0 < bits < form.sign]
    positive += [rounded(Fraction(n * n), form) for n in range(1, 50)]
    found = bits_of(f"sqrt.{mode}.{type}", positive)
    for a, bits in zip(positive, found, strict=True):
        assert bits == exact_root(Fraction(value(a)), form, mode), (mode, hex(a))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("type", CASES)
def test_reciprocals(type: str, mode: str) -> None:
    form, value = CASES[type]
    pool = [bits for bits in nasty(form, 3, 200) if bits % form.sign]
    found = bits_of(f"rcp.{mode}.{type}", pool)
    for a, bits in zip(pool, found, strict=True):
        assert bits == rounded(1 / Fraction(value(a)), form, mode), (mode, hex(a))


@pytest.mark.parametrize("mode", MODES)
def test_what_is_infinite(mode: str) -> None:
    inf, minus_inf, one, minus_one = INF32, INF32 | MINUS32, single_bits(1.0), single_bits(-1.0)
    rows = {
        "add": [(inf, one, inf), (minus_inf, inf, NAN32), (inf, inf, inf)],
        "sub": [(inf, one, inf), (inf, inf, NAN32), (one, inf, minus_inf)],
        "mul": [(inf, minus_one, minus_inf), (inf, 0, NAN32), (MINUS32, one, MINUS32)],
        "div": [
            (one, 0, inf),
            (one, MINUS32, minus_inf),
            (0, 0, NAN32),
            (inf, inf, NAN32),
            (one, minus_inf, MINUS32),
            (inf, minus_one, minus_inf),
            (inf, 0, inf),
        ],
    }
    for name, row in rows.items():
        a, b, expected = map(list, zip(*row, strict=True))
        assert bits_of(f"{name}.{mode}.f32", a, b) == expected, name
    assert bits_of(f"sqrt.{mode}.f32", [inf, minus_one, 0, MINUS32]) == [inf, NAN32, 0, MINUS32]
    assert bits_of(f"rcp.{mode}.f32", [inf, minus_inf, 0, MINUS32]) == [
        0,
        MINUS32,
        inf,
        minus_inf,
    ]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_nans_of_single_precision_are_canonical(name: str, mode: str) -> None:
    payload, negative, signalling, one = 0x7FC12345, 0xFFC00001, 0x7F800001, single_bits(1.0)
    a, b = [payload, one, negative, signalling, payload], [one, payload, payload, one, negative]
    assert bits_of(f"{name}.{mode}.f32", a, b) == [NAN32] * 5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_nans_of_double_precision_keep_the_first_payload(name: str, mode: str) -> None:
    first, second, one = INF64 | 1 << 51 | 0x123, MINUS64 | INF64 | 1 << 51 | 0x456, double_bits(1.0)
    a, b = [first, one, first, INF64 | 7], [one, second, second, second]
    assert bits_of(f"{name}.{mode}.f64", a, b) == [first, second, first, INF64 | 1 << 51 | 7]


def test_nans_that_double_precision_makes_itself() -> None:
    made, inf = 0xFFF8 << 48, INF64
    assert bits_of("mul.rn.f64", [0, inf], [inf, MINUS64]) == [made, made]
    assert bits_of("sub.rz.f64", [inf], [inf]) == [made]
    assert bits_of("sqrt.rn.f64", [double_bits(-1.0)]) == [made]
    assert bits_of("div.rn.f64", [0], [0]) == [made]


def test_which_nan_comes_out_does_not_depend_on_the_lane() -> None:
    first, second = INF64 | 1 << 51 | 0x123, INF64 | 1 << 51 | 0x456
    for lanes in (1, 3, 17, 70, 5000):
        assert bits_of("mul.rn.f64", [first] * lanes, [second] * lanes) == [first] * lanes
        assert bits_of("add.rn.f64", [second] * lanes, [first]) == [second] * lanes


def test_a_nan_among_many_lanes_is_found() -> None:
    ones = [single_bits(1.0)] * 10_000
    odd_one_out = [*ones[:7777], 0xFFC00000, *ones[7778:]]
    assert bits_of("add.rn.f32", ones, odd_one_out)[7776:7779] == [0x40000000, NAN32, 0x40000000]


def test_infinities_of_both_signs_hide_no_nan() -> None:
    a = [INF32, INF32 | MINUS32, 0x7FC00001, single_bits(2.0**127)]
    assert bits_of("add.rn.f32", a, [0]) == [*a[:2], NAN32, a[3]]


def test_ftz_takes_subnormals_for_zeros_of_their_sign() -> None:
    tiny, least, one = single_bits(2.0**-126), 0x007FFFFF, single_bits(1.0)
    half = single_bits(0.5)
    # Operands ...
    assert bits_of("add.ftz.f32", [least, least | MINUS32], [0, MINUS32]) == [0, MINUS32]
    assert bits_of("add.f32", [least, least | MINUS32], [0, MINUS32]) == [least, least | MINUS32]
    assert bits_of("div.rn.ftz.f32", [one], [least]) == [INF32]
    assert bits_of("sqrt.rn.ftz.f32", [least, least | MINUS32]) == [0, MINUS32]
    assert bits_of("rcp.rn.ftz.f32", [least | MINUS32]) == [INF32 | MINUS32]
    # ... and results.
    assert bits_of("mul.rn.ftz.f32", [tiny, tiny | MINUS32], [half, half]) == [0, MINUS32]
    assert bits_of("mul.rn.f32", [tiny], [half]) == [0x00400000]
    assert bits_of("mul.rn.ftz.f32", [tiny], [one]) == [tiny]
    assert bits_of("neg.ftz.f32", [least, one]) == [MINUS32, one | MINUS32]
    assert bits_of("abs.ftz.f32", [least | MINUS32]) == [0]


def test_sat_clamps_to_zero_and_one() -> None:
    a = [1.5, -0.25, 0.25, math.inf, -math.inf, math.nan, -0.0]
    for name in ("add.sat.f32", "sub.sat.f32", "add.rz.ftz.sat.f32"):
        found = bits_of(name, [*map(single_bits, a)], [MINUS32 if name[0] == "a" else 0] * 7)
        assert found == [single_bits(x) for x in (1.0, 0.0, 0.25, 1.0, 0.0, 0.0, 0.0)], name
    assert compute("mul.rn.sat.f32", [3.0, 0.5], [2.0, 0.5]) == [1.0, 0.25]


def test_negation_and_magnitude_touch_the_sign_alone() -> None:
    a = [0, MINUS32, 0x3F800000, 0xFFC12345, 0x7F800000]
    assert bits_of("neg.f32", a) == [x ^ MINUS32 for x in a]
    assert bits_of("abs.f32", a) == [x & ~MINUS32 for x in a]
    b = [0, MINUS64, double_bits(1.5), MINUS64 | INF64 | 1 << 51]
    assert bits_of("neg.f64", b) == [x ^ MINUS64 for x in b]
    assert bits_of("abs.f64", b) == [x & ~MINUS64 for x in b]


def test_copysign_takes_the_sign_of_the_first() -> None:
    a, b = [MINUS32, 0, single_bits(-2.0)], [single_bits(3.0), single_bits(-4.0), 0x7FC00000]
    assert bits_of("copysign.f32", a, b) == [single_bits(-3.0), single_bits(4.0), 0xFFC00000]
    assert compute("copysign.f64", [-1.0], [5.0]) == [-5.0]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("finite", [True, True, True, True, False, False]),
        ("infinite", [False, False, False, False, True, False]),
        ("number", [True, True, True, True, True, False]),
        ("notanumber", [False, False, False, False, False, True]),
        ("normal", [True, True, True, False, False, False]),
        ("subnormal", [False, False, False, True, False, False]),
    ],
)
@pytest.mark.parametrize(("type", "least"), [("f32", 2.0**-126), ("f64", 2.0**-1022)])
def test_properties(type: str, least: float, kind: str, expected: list[bool]) -> None:
    values = [0.0, 1.5, -least, least / 2, -math.inf, math.nan]
    assert compute(f"testp.{kind}.{type}", values) == expected


def test_two_at_once() -> None:
    a, b = (single_bits(1.5), single_bits(-2.0)), (single_bits(0.25), single_bits(8.0))
    packed = [[x | y << 32] for x, y in (a, b)]
    total = single_bits(1.75) | single_bits(6.0) << 32
    assert compute("add.rn.f32x2", *packed) == [total]
    assert compute("add.rn.f32x2", packed[0] * 3, packed[1]) == [total] * 3
    assert compute("mul.rz.ftz.f32x2", *packed) == [single_bits(0.375) | single_bits(-16.0) << 32]


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("div.f32", 2),  # rounding is mandatory
        ("sqrt.f32", 1),
        ("rcp.f64", 1),
        ("add.rn.sat.f64", 2),
        ("mul.ftz.f64", 2),
        ("div.rn.sat.f32", 2),
        ("add.rn.f16", 2),
        ("add.rna.f32", 2),
        ("add.rn.rz.f32", 2),
        ("neg.rn.f32", 1),
        ("testp.zero.f32", 1),
        ("copysign.ftz.f32", 2),
        ("add.sat.f32x2", 2),
        ("add.rn.f32", 3),
        ("sqrt.rn.f32", 2),
    ],
)
def test_what_does_not_exist(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=sources))


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("div.approx.f32", 2),
        ("div.full.ftz.f32", 2),
        ("rcp.approx.ftz.f64", 1),
        ("sqrt.approx.f32", 1),
        ("rsqrt.approx.f64", 1),
        ("ex2.approx.ftz.f32", 1),
        ("lg2.approx.f32", 1),
        ("sin.approx.f32", 1),
        ("cos.approx.f32", 1),
        ("tanh.approx.f32", 1),
    ],
)
def test_approximations_are_refused(name: str, sources: int) -> None:
    with pytest.raises(PtxError, match=f"{name} is an approximation whose bits only the hardware knows"):
        decoded(instruction(name, sources=sources))
