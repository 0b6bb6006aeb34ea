"""cvt: every kind of type to every other, its roundings and its ends of range."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest

from solvergen.errors import PtxError
from tests.support.exact import BRAIN, DOUBLE, HALF, SINGLE, Format, double, rounded, single
from tests.support.ptx_instructions import compute, decoded, evaluate, instruction

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
MODES = ("rn", "rz", "rm", "rp")
FORMATS: dict[str, Format] = {"f16": HALF, "f32": SINGLE, "f64": DOUBLE}


def limits(type: str) -> tuple[int, int]:
    bits = int(type[1:])
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if type[0] == "s" else (0, (1 << bits) - 1)


def integers(type: str) -> list[int]:
    low, high = limits(type)
    values = {low, low + 1, high, high - 1, 0, 1, high // 2, high // 3}
    for bit in range(int(type[1:])):
        values |= {(1 << bit) + d for d in (-2, -1, 0, 1, 2, 3)} | {
            -(1 << bit) + d for d in (-3, -1, 0, 1, 2)
        }
        values |= {
            (1 << bit) + (1 << max(bit - 24, 0)),
            (1 << bit) + (3 << max(bit - 24, 0)),
        }  # ties in float32
        values |= {
            (1 << bit) + (1 << max(bit - 53, 0)),
            (1 << bit) + (3 << max(bit - 53, 0)),
        }  # ties in float64
    random = Random(0)
    values |= {random.randint(low, high) for _ in range(50)}
    return sorted(v for v in values if low <= v <= high)


def converted(name: str, given: list[int]) -> list[int]:
    """A conversion's results. Floats are given and found as bits, integers as they are."""
    operation = decoded(instruction(name, sources=1))
    source = operation.sources[0].dtype
    bits = np.array(given, f"u{source.itemsize}" if source.kind == "f" else source)
    (result,) = evaluate(operation, [bits.view(source)])
    found: list[int] = (result.view(f"u{result.itemsize}") if result.dtype.kind == "f" else result).tolist()
    return found


@pytest.mark.parametrize(("source", "result"), [*itertools.product(INTEGERS, INTEGERS)])
def test_integers_keep_low_bits_or_are_clamped(source: str, result: str) -> None:
    values = integers(source)
    low, high = limits(result)
    size = high - low + 1
    assert compute(f"cvt.{result}.{source}", values) == [(v - low) % size + low for v in values]
    assert compute(f"cvt.sat.{result}.{source}", values) == [min(max(v, low), high) for v in values]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("source", "result"), [*itertools.product(INTEGERS, FORMATS)])
def test_integers_to_floats(source: str, result: str, mode: str) -> None:
    values = integers(source)
    found = converted(f"cvt.{mode}.{result}.{source}", values)
    for value, bits in zip(values, found, strict=True):
        assert bits == rounded(Fraction(value), FORMATS[result], mode), (mode, value)


def test_saturated_floats_of_integers() -> None:
    assert compute("cvt.rn.sat.f32.s32", [-5, 0, 1, 7]) == [0.0, 0.0, 1.0, 1.0]


def float_bits(type: str) -> list[int]:
    """Finite numbers around integers, halves, and the ends of the integer types."""
    form = FORMATS[type]
    values: set[int] = {0, 1, form.infinity - 1, 1 << (form.precision - 1)}
    for exponent in (-2, -1, *range(8), 14, 15, 16, 22, 23, 24, 30, 31, 32, 51, 52, 53, 62, 63, 64):
        if exponent > form.greatest:
            continue
        base = rounded(Fraction(2) ** exponent, form)
        values |= {base + d for d in (-2, -1, 0, 1, 2)}
        values |= {rounded(Fraction(2) ** exponent + Fraction(k, 2), form) for k in (-3, -2, -1, 1, 2, 3)}
    finite = [v for v in values if v < form.infinity]
    return sorted(finite) + [v | form.sign for v in sorted(finite)]


def value_of(bits: int, type: str) -> Fraction:
    if type == "f64":
        return Fraction(double(bits))
    if type == "f32":
        return Fraction(single(bits))
    return Fraction(float(np.uint16(bits).view(np.float16)))


def to_integer(value: Fraction, mode: str) -> int:
    if mode == "rni":
        return round(value)  # Fractions round half to even
    return {"rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](value)


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize(("source", "result"), [*itertools.product(FORMATS, INTEGERS)])
def test_floats_to_integers(source: str, result: str, mode: str) -> None:
    bits = float_bits(source)
    low, high = limits(result)
    found = converted(f"cvt.{mode}.{result}.{source}", bits)
    for given, integer in zip(bits, found, strict=True):
        expected = min(max(to_integer(value_of(given, source), mode), low), high)
        assert integer == expected, (mode, hex(given))


@pytest.mark.parametrize(("source", "result"), [*itertools.product(FORMATS, INTEGERS)])
def test_infinities_and_nans_to_integers(source: str, result: str) -> None:
    form = FORMATS[source]
    low, high = limits(result)
    infinite = [form.infinity, form.infinity | form.sign]
    assert converted(f"cvt.rzi.{result}.{source}", infinite) == [high, low]
    # Zero, unless the float or the integer has 64 bits: then the highest bit alone.
    width = int(result[1:])
    lone_bit = low if result[0] == "s" else 1 << (width - 1)
    expected = lone_bit if source == "f64" or width == 64 else 0
    nans = [form.infinity | 1, form.infinity | form.sign | 5, form.infinity | (form.infinity >> 1)]
    assert converted(f"cvt.rni.sat.{result}.{source}", nans) == [expected] * 3


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("type", FORMATS)
def test_floats_to_integral_floats(type: str, mode: str) -> None:
    form = FORMATS[type]
    bits = float_bits(type)
    found = converted(f"cvt.{mode}.{type}.{type}", bits)
    for given, result in zip(bits, found, strict=True):
        integer = Fraction(to_integer(value_of(given, type), mode))
        assert result == rounded(integer, form, negative_zero=bool(given & form.sign)), (mode, hex(given))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("source", "result"), [("f64", "f32"), ("f64", "f16"), ("f32", "f16")])
def test_to_a_narrower_float(source: str, result: str, mode: str) -> None:
    form, narrow = FORMATS[source], FORMATS[result]
    random = Random(1)
    bits = float_bits(source)
    unit = 1 << (form.precision - narrow.precision)  # one unit of the narrow format
    edges = [
        rounded(Fraction(2) ** e, form)
        for e in range(narrow.least - narrow.precision - 2, narrow.greatest + 2)
    ]
    bits += [e + d * unit // 2 + s for e in edges for d in (-1, 0, 1, 2, 3) for s in (-1, 0, 1)]
    bits += [random.randrange(form.infinity) for _ in range(200)]
    bits += [b | form.sign for b in bits]
    found = converted(f"cvt.{mode}.{result}.{source}", bits)
    for given, narrowed in zip(bits, found, strict=True):
        minus = bool(given & form.sign)
        assert narrowed == rounded(value_of(given, source), narrow, mode, negative_zero=minus), hex(given)


@pytest.mark.parametrize(("source", "result"), [("f32", "f64"), ("f16", "f64"), ("f16", "f32")])
def test_to_a_wider_float(source: str, result: str) -> None:
    form = FORMATS[source]
    bits = list(range(0, form.infinity, 7)) if source == "f16" else []
    bits += float_bits(source)
    bits += [b | form.sign for b in bits]
    found = converted(f"cvt.{result}.{source}", bits)
    for given, widened in zip(bits, found, strict=True):
        minus = bool(given & form.sign)
        assert widened == rounded(value_of(given, source), FORMATS[result], negative_zero=minus)


def test_infinities_and_nans_among_floats() -> None:
    inf = {"f16": 0x7C00, "f32": 0x7F800000, "f64": 0x7FF << 52}
    canonical = {"f16": 0x7FFF, "f32": 0x7FFFFFFF}
    for source, result in itertools.product(FORMATS, FORMATS):
        mode = "rn." if FORMATS[source].precision > FORMATS[result].precision else ""
        name = f"cvt.{mode}{result}.{source}"
        signs = [0, FORMATS[source].sign]
        expected = [inf[result], inf[result] | FORMATS[result].sign]
        assert converted(name, [inf[source] | s for s in signs]) == expected
        if result != "f64":
            assert converted(name, [inf[source] | s | 1 for s in signs]) == [canonical[result]] * 2
    # To double precision the payload is kept, and made quiet.
    assert converted("cvt.f64.f32", [0x7F800001]) == [0x7FF8 << 48 | 1 << 29]


def test_ftz_and_sat() -> None:
    least, minus = 0x007FFFFF, 0x80000000
    assert converted("cvt.ftz.f32.f32", [least, least | minus]) == [0, minus]
    assert converted("cvt.rpi.ftz.f32.f32", [least]) == [0]
    assert converted("cvt.rpi.f32.f32", [least]) == [0x3F800000]
    assert converted("cvt.rpi.ftz.s32.f32", [least]) == [0]
    assert converted("cvt.rpi.s32.f32", [least]) == [1]
    assert converted("cvt.ftz.f64.f32", [least | minus]) == [1 << 63]
    small = rounded(Fraction(1, 2**130), DOUBLE)
    assert converted("cvt.rn.ftz.f32.f64", [small]) == [0]
    assert converted("cvt.rn.f32.f64", [small]) == [1 << 19]
    nan, one, half = 0x7FC00000, 0x3F800000, 0x3F000000
    assert converted("cvt.sat.f32.f32", [nan, one + 1, half, minus | half]) == [0, one, half, 0]
    assert converted("cvt.rn.sat.f16.f32", [nan, one + 1, half]) == [0, 0x3C00, 0x3800]


@pytest.mark.parametrize("mode", ["rn", "rz"])
def test_bfloat16(mode: str) -> None:
    random = Random(3)
    bits = float_bits("f32") + [random.randrange(SINGLE.infinity) for _ in range(300)]
    bits += [(b & ~0xFFFF) + d for b in bits for d in (0x7FFF, 0x8000, 0x8001)]
    bits = [b for b in bits if b & 0x7FFFFFFF < SINGLE.infinity]
    found = converted(f"cvt.{mode}.bf16.f32", bits)
    for given, brain in zip(bits, found, strict=True):
        minus = bool(given & SINGLE.sign)
        assert brain == rounded(Fraction(single(given)), BRAIN, mode, negative_zero=minus), hex(given)
    special = [0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF]
    assert converted(f"cvt.{mode}.bf16.f32", special) == [0x7F80, 0xFF80, 0x7FFF, 0x7FFF]


def test_from_bfloat16() -> None:
    expected = [0x3F800000, 0xC0490000, 0xFF800000, 0x7FFFFFFF, 0x00010000]
    assert converted("cvt.f32.bf16", [0x3F80, 0xC049, 0xFF80, 0x7F81, 0x0001]) == expected


def test_pairs() -> None:
    first, second = [1.0, -2.5, 65520.0], [0.5, math.nan, 1e-8]
    assert compute("cvt.rn.f16x2.f32", first, second) == [0x3C003800, 0xC1007FFF, 0x7C000000]
    assert compute("cvt.rz.f16x2.f32", first, second) == [0x3C003800, 0xC1007FFF, 0x7BFF0000]
    assert compute("cvt.rn.bf16x2.f32", first, [0.5, math.nan, -0.0]) == [0x3F803F00, 0xC0207FFF, 0x47808000]
    assert compute("cvt.rn.relu.bf16x2.f32", [-1.0], [2.0]) == [0x4000]
    assert compute("cvt.rn.relu.bf16.f32", [-0.0, -3.0, math.nan]) == [0, 0, 0x7FFF]


def test_a_single_value_stands_for_all_lanes() -> None:
    operation = decoded(instruction("cvt.rzi.s32.f32", sources=1))
    assert evaluate(operation, [np.array([2.9], np.float32)])[0].tolist() == [2]


@pytest.mark.parametrize(
    "name",
    [
        "cvt.f32.s32",  # roundings are mandatory wherever something can be lost ...
        "cvt.s32.f32",
        "cvt.f32.f64",
        "cvt.rn.s32.f32",
        "cvt.rzi.f32.s32",
        "cvt.rn.f64.f32",  # ... and illegal elsewhere
        "cvt.rn.u32.u16",
        "cvt.rzi.f64.f32",
        "cvt.ftz.f64.s32",
        "cvt.rn.tf32.f32",
        "cvt.rna.tf32.f32",
        "cvt.rn.satfinite.f16.f32",
        "cvt.rs.f16x2.f32",
        "cvt.rn.bf16.f64",
        "cvt.f64.bf16",
        "cvt.b32.u32",
        "cvt.pack.sat.u8.s32",
        "cvt.rn.f32",
        "cvt",
    ],
)
def test_what_does_not_exist(name: str) -> None:
    with pytest.raises(PtxError, match="PTX line 7"):
        decoded(instruction(name, sources=1))
