"""Floating-point arithmetic: add sub mul div rcp sqrt neg abs copysign testp.

PTX ISA, "Floating-Point Instructions". Single precision keeps subnormals unless ``.ftz`` says to take
them, in operands and results, for zeros of their sign. ``.sat`` clamps to [0, 1] and makes a NaN 0.
Rounding is to nearest, ties to even, unless ``.rz``, ``.rm`` or ``.rp`` say towards zero, down or up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions import directed
from solvergen.runtime.ptx.instructions.nans import settled
from solvergen.runtime.ptx.instructions.operation import Compute, Decoder, Form, Operation
from solvergen.runtime.ptx.types import TYPES, Type

Binary = Callable[[HostArray, HostArray], HostArray]

ROUNDINGS = ("rn", "rz", "rm", "rp")

F32, B64 = TYPES["f32"], TYPES["b64"]

_TINY = np.finfo(np.float32).tiny
_ZERO = np.float32(0)


def flushed(values: HostArray) -> HostArray:
    """``.ftz``: subnormals of single precision become zeros of the same sign."""
    return np.where(np.abs(values) < _TINY, np.copysign(_ZERO, values), values)


def saturated(values: HostArray) -> HostArray:
    """``.sat``: clamped to [0, 1]; NaN and -0 become +0."""
    clamped: HostArray = np.minimum(np.fmax(values, 0.0), 1.0) + 0.0
    return clamped


def modified(compute: Compute, ftz: bool, sat: bool = False) -> Compute:
    """``compute`` of single precision, operands and result flushed and the result clamped where asked for."""
    if not ftz and not sat:
        return compute

    def wrapped(*operands: HostArray) -> HostArray:
        result = compute(*map(flushed, operands)) if ftz else compute(*operands)
        assert isinstance(result, np.ndarray)
        result = flushed(result) if ftz else result
        return saturated(result) if sat else result

    return wrapped


def pairwise(compute: Compute) -> Compute:
    """``compute`` of single precision on 64 bits that hold two numbers each (``.f32x2``)."""

    def halves(value: HostArray, lanes: int) -> HostArray:
        pair = np.ascontiguousarray(value).view(np.float32)
        return np.tile(pair, lanes) if value.size == 1 else pair

    def wrapped(*operands: HostArray) -> HostArray:
        lanes = max(operand.size for operand in operands)
        result = compute(*(halves(operand, lanes) for operand in operands))
        assert isinstance(result, np.ndarray)
        return result.view(np.uint64)

    return wrapped


def read_type(form: Form, *flags: str) -> tuple[Type, list[bool]]:
    """The type, f32 or f64, and which of ``flags`` are there; they go with f32 only."""
    type = form.type("f32", "f64")
    present = [form.flag(flag) for flag in flags]
    if type.bits == 64 and any(present):
        form.unknown("." + " or .".join(flags))
    return type, present


def _sums_and_products(name: str, operation: Binary) -> Decoder:
    """add, sub, mul: ``.sat`` exists, ``.f32x2`` too, and ``.rn`` may be left out.

    Left out it allows ptxas to contract; here it is ``.rn`` then.
    """

    def nearest(a: HostArray, b: HostArray) -> HostArray:
        return settled(operation(a, b), a, b)

    def decode(form: Form) -> Operation:
        rounding = form.one_of(*ROUNDINGS) or "rn"
        two = form.flag("f32x2")
        type, (ftz, sat) = (F32, (form.flag("ftz"), False)) if two else read_type(form, "ftz", "sat")
        compute = nearest if rounding == "rn" else directed.arithmetic(name, rounding, type)
        compute = modified(compute, ftz, sat)
        if two:
            return form.operation(pairwise(compute), (B64, B64), B64)
        return form.operation(compute, (type, type), type)

    return decode


add = _sums_and_products("add", np.add)
sub = _sums_and_products("sub", np.subtract)
mul = _sums_and_products("mul", np.multiply)


def div(form: Form) -> Operation:
    """``div.rnd{.ftz}``: the rounded quotient; x/0 is infinite, 0/0 a NaN."""
    rounding = form.needs(*ROUNDINGS)
    type, (ftz,) = read_type(form, "ftz")

    def nearest(a: HostArray, b: HostArray) -> HostArray:
        return settled(np.divide(a, b), a, b)

    compute = nearest if rounding == "rn" else directed.arithmetic("div", rounding, type)
    return form.operation(modified(compute, ftz), (type, type), type)


def rcp(form: Form) -> Operation:
    """``rcp.rnd{.ftz}``: the rounded quotient 1/x."""
    rounding = form.needs(*ROUNDINGS)
    type, (ftz,) = read_type(form, "ftz")
    one = np.ones(1, type.dtype)
    quotient = None if rounding == "rn" else directed.arithmetic("div", rounding, type)

    def compute(a: HostArray) -> HostArray:
        if quotient is None:
            return settled(np.divide(one, a), a)
        result = quotient(one, a)
        assert isinstance(result, np.ndarray)
        return result

    return form.operation(modified(compute, ftz), (type,), type)


def sqrt(form: Form) -> Operation:
    """``sqrt.rnd{.ftz}``: the rounded square root; of -0 -0, of what is below 0 a NaN."""
    rounding = form.needs(*ROUNDINGS)
    type, (ftz,) = read_type(form, "ftz")

    def nearest(a: HostArray) -> HostArray:
        return settled(np.sqrt(a), a)

    compute = nearest if rounding == "rn" else directed.arithmetic("sqrt", rounding, type)
    return form.operation(modified(compute, ftz), (type,), type)


def neg(form: Form) -> Operation:
    """``neg{.ftz}``: the sign bit flipped, of a NaN too (the ISA leaves the NaN open; devices do this)."""
    type, (ftz,) = read_type(form, "ftz")
    return form.operation(modified(np.negative, ftz), (type,), type)


def abs(form: Form) -> Operation:
    """``abs{.ftz}``: the sign bit cleared, of a NaN too (the ISA leaves the NaN open; devices do this)."""
    type, (ftz,) = read_type(form, "ftz")
    return form.operation(modified(np.absolute, ftz), (type,), type)


def copysign(form: Form) -> Operation:
    """``copysign d, a, b``: b with the sign of a."""
    type = form.type("f32", "f64")
    return form.operation(lambda a, b: np.copysign(b, a), (type, type), type)


def testp(form: Form) -> Operation:
    """``testp.kind``: whether a value is finite, infinite, a number, a NaN, normal or subnormal.

    Zeros count as normal.
    """
    kind = form.needs("finite", "infinite", "number", "notanumber", "normal", "subnormal")
    type = form.type("f32", "f64")
    tiny = np.finfo(type.dtype).tiny
    tests: dict[str, Callable[[HostArray], HostArray]] = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "number": lambda a: ~np.isnan(a),
        "notanumber": np.isnan,
        "normal": lambda a: np.isfinite(a) & ((np.abs(a) >= tiny) | (a == 0)),
        "subnormal": lambda a: (np.abs(a) < tiny) & (a != 0),
    }
    return form.operation(tests[kind], (type,), TYPES["pred"])
