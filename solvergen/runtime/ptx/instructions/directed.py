"""Rounding towards zero, down and up, exactly.

Each operation first rounds to nearest, as NumPy does. ``excess`` is then the sign of what that result is
too large by, found exactly, and a step to the neighbour where it lies on the wrong side does the rest.
Single precision is decided in float64, where products are exact and a sum's error is a float64, too. Double
precision, which nobody's kernels are made of, is decided lane by lane in fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.nans import settled
from solvergen.runtime.ptx.instructions.operation import Compute
from solvergen.runtime.ptx.types import Type

Exact = Callable[..., "Fraction | None"]


def stepped(nearest: HostArray, excess: HostArray, rounding: str) -> HostArray:
    """``nearest`` rounded as ``rounding`` says instead; ``excess``: the sign of nearest - exact."""
    low, high = nearest.dtype.type(-math.inf), nearest.dtype.type(math.inf)
    if rounding == "rm":
        return np.where(excess > 0, np.nextafter(nearest, low), nearest)
    if rounding == "rp":
        return np.where(excess < 0, np.nextafter(nearest, high), nearest)
    away = np.where(nearest > 0, excess > 0, excess < 0)
    return np.where(away & (nearest != 0), np.nextafter(nearest, nearest.dtype.type(0)), nearest)


def two_sum(a: HostArray, b: HostArray) -> tuple[HostArray, HostArray]:
    """The sum rounded to nearest and its exact error (Knuth); the error is NaN where the sum isn't finite."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def odd(total: HostArray, error: HostArray) -> HostArray:
    """total + error rounded to odd, for a float64 ``total`` that is their sum rounded to nearest.

    What is rounded once more, to a format at least two bits shorter, is then rounded as if only once
    (Boldo and Melquiond): an inexact result ends in a 1, so it is never taken for a tie.
    """
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    towards = np.where((error > 0) == (total > 0), np.int64(1), np.int64(-1))
    rounded: HostArray = bits + np.where(inexact, towards, np.int64(0))
    return rounded.view(np.float64)


def minus_zero(result: HostArray, a: HostArray, b: HostArray, rounding: str) -> HostArray:
    """The sum a + b again, with the zeros of rounding down: an exact zero is -0 unless both are +0."""
    if rounding != "rm":
        return result
    exact_zero = (result == 0) & (np.signbit(a) | np.signbit(b)) & (a == -b)
    return np.where(exact_zero, result.dtype.type(-0.0), result)


def narrowed(values: HostArray, rounding: str) -> HostArray:
    """float64, exact or rounded to odd, to float32."""
    nearest = values.astype(np.float32)
    return nearest if rounding == "rn" else stepped(nearest, np.sign(nearest - values), rounding)


def sum32(a: HostArray, b: HostArray, rounding: str) -> HostArray:
    """The sum of two float64 that are products or values of single precision, to float32."""
    result = narrowed(odd(*two_sum(a, b)), rounding)
    return minus_zero(result, a, b, rounding)


def _single(name: str, rounding: str) -> Compute:
    def add(a: HostArray, b: HostArray) -> HostArray:
        return sum32(a.astype(np.float64), b.astype(np.float64), rounding)

    def sub(a: HostArray, b: HostArray) -> HostArray:
        return sum32(a.astype(np.float64), -b.astype(np.float64), rounding)

    def mul(a: HostArray, b: HostArray) -> HostArray:
        return narrowed(a.astype(np.float64) * b.astype(np.float64), rounding)

    def div(a: HostArray, b: HostArray) -> HostArray:
        nearest = np.divide(a, b)
        product = nearest.astype(np.float64) * b  # exact: 24 by 24 bits
        return stepped(nearest, np.sign(product - a) * np.sign(b), rounding)

    def sqrt(a: HostArray) -> HostArray:
        nearest = np.sqrt(a)
        return stepped(nearest, np.sign(nearest.astype(np.float64) ** 2 - a), rounding)

    computes: dict[str, Compute] = {"add": add, "sub": sub, "mul": mul, "div": div, "sqrt": sqrt}
    return computes[name]


def excess64(nearest: HostArray, exact: Exact, *operands: HostArray) -> HostArray:
    """The sign of ``nearest`` minus ``exact`` of the operands, lane by lane; 0 where these aren't finite.

    ``exact`` answers None where there is no number (a division by zero).
    """
    found = np.zeros(nearest.shape)
    lanes = [np.broadcast_to(operand, nearest.shape) for operand in operands]
    usable = np.logical_and.reduce([np.isfinite(lane) for lane in lanes])
    for index in np.flatnonzero(usable):
        value = exact(*(Fraction(float(lane[index])) for lane in lanes))
        result = float(nearest[index])
        if value is None or math.isnan(result):
            continue
        if math.isinf(result):
            found[index] = math.copysign(1, result)
        else:
            found[index] = (result > value) - (result < value)
    return found


def _double(name: str, rounding: str) -> Compute:
    def quotient(a: Fraction, b: Fraction) -> Fraction | None:
        return a / b if b else None

    operations: dict[str, tuple[Compute, Exact]] = {
        "add": (np.add, lambda a, b: a + b),
        "sub": (np.subtract, lambda a, b: a - b),
        "mul": (np.multiply, lambda a, b: a * b),
        "div": (np.divide, quotient),
    }

    def binary(a: HostArray, b: HostArray) -> HostArray:
        nearest = operation(a, b)
        assert isinstance(nearest, np.ndarray)
        result = stepped(nearest, excess64(nearest, exact, a, b), rounding)
        if name in ("add", "sub"):
            result = minus_zero(result, a, b if name == "add" else -b, rounding)
        return result

    def sqrt(a: HostArray) -> HostArray:
        nearest = np.sqrt(a)
        # The sign of sqrt(a) - nearest is that of a - nearest**2.
        square = excess64(a, lambda a, root: root * root, a, nearest)
        return stepped(nearest, -square, rounding)

    if name == "sqrt":
        return sqrt
    operation, exact = operations[name]
    return binary


def arithmetic(name: str, rounding: str, type: Type) -> Compute:
    """add, sub, mul, div (two operands) or sqrt (one) of f32 or f64 under ``.rz``, ``.rm`` or ``.rp``."""
    compute = (_single if type.bits == 32 else _double)(name, rounding)

    def directed(*operands: HostArray) -> HostArray:
        result = compute(*operands)
        assert isinstance(result, np.ndarray)
        return settled(result, *operands)

    return directed
