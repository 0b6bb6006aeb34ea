"""min and max of floats: NaNs, signed zeros, magnitudes."""

from __future__ import annotations

import pytest

from solvergen.errors import PtxError
from tests.support.exact import double_bits, single_bits
from tests.support.ptx_instructions import bits_of, compute, decoded, instruction

NAN32, NAN64, INF32, MINUS32 = 0x7FFFFFFF, 0x7FF8 << 48, 0x7F800000, 0x80000000
ONE, TWO = single_bits(1.0), single_bits(2.0)
PAYLOAD = 0xFFC12345


def test_numbers_and_zeros() -> None:
    a = [ONE, TWO, 0, MINUS32, MINUS32, 0, INF32, ONE | MINUS32]
    b = [TWO, ONE, MINUS32, 0, MINUS32, 0, TWO, TWO | MINUS32]
    assert bits_of("min.f32", a, b) == [
        ONE,
        ONE,
        MINUS32,
        MINUS32,
        MINUS32,
        0,
        TWO,
        TWO | MINUS32,
    ]
    assert bits_of("max.f32", a, b) == [TWO, TWO, 0, 0, MINUS32, 0, INF32, ONE | MINUS32]
    assert compute("min.f64", [1.0, -3.0], [2.0, -4.0]) == [1.0, -4.0]
    assert bits_of("max.f64", [1 << 63, 0], [0, 1 << 63]) == [0, 0]


@pytest.mark.parametrize("name", ["min", "max"])
def test_nans(name: str) -> None:
    a, b = [PAYLOAD, ONE, PAYLOAD, 0x7F800001], [ONE, PAYLOAD, PAYLOAD, TWO]
    assert bits_of(f"{name}.f32", a, b) == [ONE, ONE, NAN32, TWO]
    assert bits_of(f"{name}.NaN.f32", a, b) == [NAN32] * 4
    payload, one = 0xFFF8000000000123, double_bits(1.0)
    assert bits_of(f"{name}.f64", [payload, one, payload], [one, payload, payload]) == [
        one,
        one,
        NAN64,
    ]
    assert bits_of(f"{name}.NaN.f32", [ONE, PAYLOAD], [TWO])[1] == NAN32


def test_magnitudes_with_the_sign_of_the_product() -> None:
    a, b = [-1.0, -1.0, 3.0, 3.0], [2.0, -2.0, -2.0, 2.0]
    assert compute("min.xorsign.abs.f32", a, b) == [-1.0, 1.0, -2.0, 2.0]
    assert compute("max.xorsign.abs.f32", a, b) == [-2.0, 2.0, -3.0, 3.0]
    assert bits_of("max.NaN.xorsign.abs.f32", [PAYLOAD], [ONE | MINUS32]) == [NAN32]
    assert bits_of("min.xorsign.abs.f32", [PAYLOAD], [ONE]) == [ONE | MINUS32]


def test_three_operands() -> None:
    a, b, c = [1.0, 5.0, -7.0], [2.0, 4.0, 6.0], [3.0, 3.0, 5.0]
    assert compute("min.f32", a, b, c) == [1.0, 3.0, -7.0]
    assert compute("max.f32", a, b, c) == [3.0, 5.0, 6.0]
    assert compute("max.abs.f32", a, b, c) == [3.0, 5.0, 7.0]
    assert bits_of("min.NaN.f32", [ONE, PAYLOAD], [PAYLOAD, ONE], [TWO, TWO]) == [NAN32, NAN32]
    assert bits_of("max.f32", [PAYLOAD], [PAYLOAD], [TWO]) == [TWO]


def test_ftz() -> None:
    least = 0x007FFFFF
    assert bits_of("min.ftz.f32", [least, least | MINUS32], [ONE, ONE]) == [0, MINUS32]
    assert bits_of("max.f32", [least], [0]) == [least]


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("min.NaN.f64", 2),
        ("max.ftz.f64", 2),
        ("min.xorsign.f32", 2),
        ("min.abs.f32", 2),
        ("max.xorsign.abs.f32", 3),
        ("max.f64", 3),
        ("max.f16", 2),
        ("min.rn.f32", 2),
    ],
)
def test_what_does_not_exist(name: str, sources: int) -> None:
    with pytest.raises(PtxError):
        decoded(instruction(name, sources=sources))
