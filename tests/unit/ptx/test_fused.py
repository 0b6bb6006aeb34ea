"""fma against rational arithmetic: one rounding, whatever cancels or overflows in between."""

from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import pytest

from solvergen.errors import PtxError
from tests.support.exact import DOUBLE, SINGLE, Format, double, double_bits, rounded, single, single_bits
from tests.support.ptx_instructions import bits_of, compute, decoded, instruction

CASES = {"f32": (SINGLE, single, single_bits), "f64": (DOUBLE, double, double_bits)}
NAN32, INF32, MINUS32 = 0x7FFFFFFF, 0x7F800000, 0x80000000


def triples(form: Format, seed: int, count: int) -> list[tuple[int, int, int]]:
    """Factors and addends: random ones, and addends that nearly cancel the product or make it a tie."""
    random = Random(seed)
    top = form.infinity
    width = form.precision - 1
    value = single if form is SINGLE else double
    found = []
    for index in range(count):
        signs = [random.randrange(2) * form.sign for _ in range(3)]
        if index % 6 == 0:
            a, b, c = (random.randrange(top) for _ in range(3))
        else:
            exponents = random.randrange(20, 2 * form.greatest - 20), random.randrange(-12, 13)
            a = exponents[0] << width | random.randrange(1 << width)
            b = (form.greatest + exponents[1]) << width | random.randrange(1 << width)
            if index % 6 == 1:
                b &= ~((1 << (width // 2 + 1)) - 1)  # short factors: exact products, ties
                a &= ~((1 << (width // 2)) - 1)
            product = rounded(Fraction(value(a)) * Fraction(value(b)), form)
            if index % 6 == 5:  # much smaller addend: only its sign matters
                c = max(product - (random.randrange(width - 2, 2 * width) << width), random.randrange(4))
            else:
                c = product + random.randrange(-2, 3)
                signs[2] = (signs[0] ^ signs[1]) ^ form.sign if index % 6 < 4 else signs[2]
        found.append((a | signs[0], b | signs[1], min(max(c, 0), top - 1) | signs[2]))
    # Products just between two numbers, with an addend so small that only its sign is left of it.
    for _ in range(count // 10):
        short = form.precision // 2 + 1
        a, b = (random.randrange(1 << (short - 1), 1 << short) | 1 for _ in range(2))
        if (a * b).bit_length() == form.precision + 1:
            tiny = rounded(Fraction(2) ** -random.randrange(3 * form.precision, 4 * form.precision), form)
            c = random.choice([tiny, tiny | form.sign, 0])
            flip = random.randrange(2) * form.sign
            found.append((rounded(Fraction(a), form) | flip, rounded(Fraction(b), form), c))
    # Half a unit of the addend, but for a trifle: (1 + u)*(1 - u) = 1 - u**2; among subnormals, too.
    u = Fraction(2) ** -width
    for scale in (form.least - width, form.least - width + 1, -40, 0, 40):
        first = -(-(scale - 1) // 2)
        a = rounded((1 + u) * Fraction(2) ** first, form)
        b = rounded((1 - u) * Fraction(2) ** (scale - 1 - first), form)
        for _ in range(4):
            c = rounded((random.randrange(1 << (width - 4), 1 << width) | 1) * Fraction(2) ** scale, form)
            found += [(a, b, c), (a | form.sign, b, c), (a, b, c | form.sign)]
    # Products below the subnormals, at the largest number, and beyond it with an addend that brings it back.
    least, largest = 1, top - 1
    found += [
        (least, least, 0),
        (least, least, least),
        (least, least | form.sign, 5),
        (least, least, largest),
    ]
    found += [(largest, 2 * form.greatest << width, largest | form.sign), (largest, largest, largest)]
    return found


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("type", CASES)
def test_rounded_once(type: str, mode: str) -> None:
    form, value, _ = CASES[type]
    rows = triples(form, 5, 3000 if mode == "rn" else 600)
    found = bits_of(f"fma.{mode}.{type}", *zip(*rows, strict=True))
    for row, bits in zip(rows, found, strict=True):
        a, b, c = (Fraction(value(x)) for x in row)
        negative = bool((row[0] ^ row[1]) & form.sign), bool(row[2] & form.sign)
        minus = negative[0] if a * b == c == 0 and negative[0] == negative[1] else mode == "rm"
        assert bits == rounded(a * b + c, form, mode, negative_zero=minus), (mode, [*map(hex, row)])


@pytest.mark.parametrize("type", CASES)
def test_differs_from_a_product_and_a_sum(type: str) -> None:
    form, _, bits = CASES[type]
    # (1 + u)**2 - (1 + 2u) is u**2; a product rounded first leaves 0.
    u = 2.0 ** (1 - form.precision)
    assert bits_of(f"fma.rn.{type}", [bits(1 + u)], [bits(1 + u)], [bits(-1 - 2 * u)]) == [bits(u * u)]


@pytest.mark.parametrize("type", CASES)
@pytest.mark.parametrize(("mode", "zero"), [("rn", 0.0), ("rz", 0.0), ("rm", -0.0), ("rp", 0.0)])
def test_signs_of_zeros(type: str, mode: str, zero: float) -> None:
    _, _, bits = CASES[type]
    a, b, c = [2.0, 0.0, -0.0, 0.0, -0.0], [3.0, 1.0, 1.0, 1.0, 1.0], [-6.0, 0.0, -0.0, -0.0, 0.0]
    found = bits_of(f"fma.{mode}.{type}", *([*map(bits, column)] for column in (a, b, c)))
    assert found == [bits(zero), bits(0.0), bits(-0.0), bits(zero), bits(zero)]


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_infinities_and_nans(mode: str) -> None:
    one, minus_inf = single_bits(1.0), INF32 | MINUS32
    rows = [
        (INF32, one, one, INF32),
        (INF32, 0, one, NAN32),
        (INF32, one, minus_inf, NAN32),
        (one, one, minus_inf, minus_inf),
        (0xFFC00001, one, one, NAN32),
        (one, one, 0x7FC00001, NAN32),
    ]
    a, b, c, expected = map(list, zip(*rows, strict=True))
    assert bits_of(f"fma.{mode}.f32", a, b, c) == expected
    infinite = bits_of(
        f"fma.{mode}.f64",
        *([*map(double_bits, x)] for x in ([math.inf, 1.0], [1.0, 1.0], [1.0, -math.inf])),
    )
    assert [*map(double, infinite)] == [math.inf, -math.inf]


def test_payloads_of_double_precision() -> None:
    first, third = 0x7FF8000000000123, 0xFFF8000000000456
    one = double_bits(1.0)
    assert bits_of("fma.rn.f64", [first, one], [one, one], [third, third]) == [first, third]


def test_modifiers() -> None:
    least = 0x007FFFFF
    assert bits_of("fma.rn.ftz.f32", [least], [single_bits(2.0**100)], [MINUS32]) == [0]
    assert compute("fma.rn.sat.f32", [2.0, -2.0, 0.5], [2.0, 2.0, 0.5], [0.0, 0.0, 0.25]) == [1.0, 0.0, 0.5]
    assert compute("mad.rn.f32", [2.0], [3.0], [1.0]) == [7.0]
    two, three = single_bits(2.0), single_bits(3.0)
    packed = [two | three << 32]
    assert compute("fma.rn.f32x2", packed, packed, packed) == [single_bits(6.0) | single_bits(12.0) << 32]
    for name in ("fma.f32", "fma.rn.sat.f64", "fma.rn.ftz.f64", "fma.rn.f16", "mad.f32", "mad.lo.f32"):
        with pytest.raises(PtxError):
            decoded(instruction(name, sources=3))
