"""fma: a product and a sum, rounded once.

PTX ISA, "Floating-Point Instructions: fma". NumPy has no such operation. In single precision the product is
exact in float64, and the sum, rounded to odd there, rounds to what it should (``directed``). In double
precision the same is done with the two halves of the exact product, as long as none of them leaves the
range of normal numbers; such lanes, and directed roundings, are decided in fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.directed import (
    excess64,
    minus_zero,
    odd,
    stepped,
    sum32,
    two_sum,
)
from solvergen.runtime.ptx.instructions.floats import B64, F32, ROUNDINGS, modified, pairwise, read_type
from solvergen.runtime.ptx.instructions.nans import settled
from solvergen.runtime.ptx.instructions.operation import Form, Operation

_SPLIT = np.float64(2**27 + 1)
_BELOW_SINGLE, _TIE = np.uint64(2**29 - 1), np.uint64(2**28)  # bits of a float64 that a float32 lacks
_LARGE, _SMALL = 2.0**990, 2.0**-900


def two_product(a: HostArray, b: HostArray) -> tuple[HostArray, HostArray]:
    """The product rounded to nearest and its exact error (Dekker), if nothing over- or underflows."""

    def halves(x: HostArray) -> tuple[HostArray, HostArray]:
        scaled = x * _SPLIT
        upper = scaled - (scaled - x)
        return upper, x - upper

    product = a * b
    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error


def fma64(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
    """a*b + c in float64, rounded to nearest once."""
    product, error = two_product(a, b)
    low, rest = two_sum(c, error)
    high, low = two_sum(product, low)
    result: HostArray = high + odd(*two_sum(low, rest))  # Boldo and Melquiond, "Emulation of FMA"
    plain = product + c  # right where an operand or the result is infinite, a NaN, or a zero is added
    result = np.where(np.isfinite(result) & (result != 0), result, plain)
    largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.maximum(np.abs(product), np.abs(c)))
    doubtful = (largest > _LARGE) | ((np.abs(product) < _SMALL) & (a != 0) & (b != 0))
    if doubtful.any():
        lanes = [np.broadcast_to(x, result.shape) for x in (a, b, c)]
        for index in np.flatnonzero(doubtful):
            values = [float(lane[index]) for lane in lanes]
            if all(map(math.isfinite, values)):
                result[index] = _one(*values)
    return result


def _one(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return a * b + c if c == 0 else 0.0  # of zeros the signs matter, of what cancels nothing
    try:
        return exact.numerator / exact.denominator  # Python rounds this quotient correctly
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma32(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
    """a*b + c in float32, rounded to nearest once.

    Rounded to float64 and then to float32 it is wrong only if the float64 looks like a tie, which among
    subnormals may lie at any bit: those lanes take the long way.
    """
    product = np.multiply(a, b, dtype=np.float64)  # exact
    total: HostArray = product + c
    result: HostArray = total.astype(np.float32)
    doubtful = (total.view(np.uint64) & _BELOW_SINGLE) == _TIE
    doubtful |= (np.abs(total) < 2.0**-125) & (total != 0)
    if doubtful.any():
        product, c = (np.broadcast_to(x, result.shape)[doubtful] for x in (product, c))
        result[doubtful] = sum32(product, c.astype(np.float64), "rn")
    return result


def fma(form: Form) -> Operation:
    """``fma.rnd{.ftz}{.sat} d, a, b, c``: a*b + c, rounded once. ``mad`` of floats is the same."""
    rounding = form.needs(*ROUNDINGS)
    two = form.flag("f32x2")
    type, (ftz, sat) = (F32, (form.flag("ftz"), False)) if two else read_type(form, "ftz", "sat")

    def single(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        if rounding == "rn":
            return settled(fma32(a, b, c))
        product = np.multiply(a, b, dtype=np.float64)
        return settled(sum32(product, c.astype(np.float64), rounding))

    def double(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        result = fma64(a, b, c)
        if rounding != "rn":
            excess = excess64(result, lambda a, b, c: a * b + c, a, b, c)
            result = stepped(result, excess, rounding)
            result = np.where(result == 0, minus_zero(result, a * b, c, rounding), result)
        return settled(result, a, b, c)

    compute = modified(single if type.bits == 32 else double, ftz, sat)
    if two:
        return form.operation(pairwise(compute), (B64, B64, B64), B64)
    return form.operation(compute, (type, type, type), type)
