"""Rounding as IEEE 754 defines it, in fractions: an oracle for arithmetic, and values worth trying."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    """A binary format: bits of the significand with the hidden one, least and greatest exponent."""

    precision: int
    least: int
    greatest: int

    @property
    def infinity(self) -> int:
        return (2 * self.greatest + 1) << (self.precision - 1)

    @property
    def sign(self) -> int:
        return 1 << (self.precision + (2 * self.greatest + 1).bit_length() - 1)


HALF, BRAIN = Format(11, -14, 15), Format(8, -126, 127)
SINGLE, DOUBLE = Format(24, -126, 127), Format(53, -1022, 1023)


def rounded(value: Fraction, form: Format, mode: str = "rn", *, negative_zero: bool = False) -> int:
    """The bits of ``value`` rounded to ``form`` by ``rn``, ``rz``, ``rm`` or ``rp``."""
    if value == 0:
        return form.sign if negative_zero else 0
    negative, size = value < 0, abs(value)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if size < Fraction(2) ** exponent:
        exponent -= 1
    assert Fraction(2) ** exponent <= size < Fraction(2) ** (exponent + 1)
    unit = Fraction(2) ** (max(exponent, form.least) - form.precision + 1)
    digits = math.floor(size / unit)
    rest = size / unit - digits
    if mode == "rn":
        up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and digits % 2 == 1)
    else:
        up = rest > 0 and {"rz": False, "rm": negative, "rp": not negative}[mode]
    digits += up
    bits = form.sign if negative else 0
    if digits * unit >= Fraction(2) ** (form.greatest + 1):
        to_infinity = mode == "rn" or {"rz": False, "rm": negative, "rp": not negative}[mode]
        return bits | (form.infinity if to_infinity else form.infinity - 1)
    if digits < 1 << (form.precision - 1):  # subnormal
        return bits | digits
    # The hidden bit of ``digits`` adds one to the exponent, and so does a carry into the next power of two.
    return bits | ((max(exponent, form.least) + form.greatest - 1) << (form.precision - 1)) + digits


def single(bits: int) -> float:
    """The value of a float32's bits."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


def single_bits(value: float) -> int:
    """The bits of a value that is a float32; of a NaN the default one."""
    bits = int(struct.unpack("<I", struct.pack("<f", value))[0])
    assert math.isnan(value) or single(bits) == value, value
    return bits


def double(bits: int) -> float:
    """The value of a float64's bits."""
    return float(struct.unpack("<d", struct.pack("<Q", bits))[0])


def double_bits(value: float) -> int:
    """The bits of a float64."""
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
