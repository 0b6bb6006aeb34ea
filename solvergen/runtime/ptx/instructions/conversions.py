"""cvt: from one type to another.

PTX ISA, "Data Movement and Conversion Instructions: cvt".

    integer to integer   the low bits or, extended, the value; ``.sat`` clamps to the new range
    integer to float     rounded; ``.sat`` clamps to [0, 1]
    float to integer     rounded to an integer (``.rni .rzi .rmi .rpi``), then clamped to the range
    float to float       rounded or exact; at equal width also to an integer; ``.sat`` clamps to [0, 1]

A NaN becomes 0 as an integer, unless the float or the integer has 64 bits: then the highest bit alone. As a
float it becomes the canonical NaN of its width (single to double precision: its payload is kept).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.bfloat16 import brain, to_brain
from solvergen.runtime.ptx.instructions.directed import odd, stepped, two_sum
from solvergen.runtime.ptx.instructions.floats import ROUNDINGS, flushed, saturated
from solvergen.runtime.ptx.instructions.nans import CANONICAL
from solvergen.runtime.ptx.instructions.operation import Compute, Form, Operation
from solvergen.runtime.ptx.types import TYPES, Type

INTEGERS = ("u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64")
FLOATS = ("f16", "f32", "f64")
TO_INTEGER: dict[str, Callable[[HostArray], HostArray]] = {
    "rni": np.rint,
    "rzi": np.trunc,
    "rmi": np.floor,
    "rpi": np.ceil,
}


def cvt(form: Form) -> Operation:
    """``cvt{.round}{.ftz}{.sat}.to.from``: see the module."""
    names = form.instruction.modifiers
    if any(name in names for name in ("bf16", "bf16x2", "f16x2")):
        return packed_or_brain(form)
    source = form.type(*INTEGERS, *FLOATS)
    result = form.type(*INTEGERS, *FLOATS)
    sat = form.flag("sat")
    ftz = form.flag("ftz")
    if ftz and "f32" not in (source.name, result.name):
        form.unknown(".ftz")
    if source.kind != "float":
        if result.kind != "float":
            compute = integer_to_integer(source, result, sat)
        else:
            compute = integer_to_float(source, result, form.needs(*ROUNDINGS))
    elif result.kind != "float":
        compute = float_to_integer(source, result, form.needs(*TO_INTEGER))
    else:
        compute = _float_to_float(form, source, result)
    if source.name == "f32" and ftz:
        compute = _after(flushed, compute)
    if result.name == "f32" and ftz:
        compute = _before(flushed, compute)
    if result.kind == "float" and sat:
        compute = _before(saturated, compute)
    return form.operation(compute, (source,), result)


def _after(first: Callable[[HostArray], HostArray], then: Compute) -> Compute:
    return lambda a: then(first(a))


def _before(last: Callable[[HostArray], HostArray], earlier: Compute) -> Compute:
    def compute(a: HostArray) -> HostArray:
        result = earlier(a)
        assert isinstance(result, np.ndarray)
        return last(result)

    return compute


def integer_to_integer(source: Type, result: Type, sat: bool) -> Compute:
    """The value in another width; ``sat``: clamped."""
    dtype = result.dtype
    if sat:
        old, new = np.iinfo(source.dtype), np.iinfo(dtype)
        low = source.dtype.type(max(old.min, new.min))
        high = source.dtype.type(min(old.max, new.max))
        return lambda a: np.clip(a, low, high).astype(dtype)
    if source.bits == result.bits:
        return lambda a: a.view(dtype)
    return lambda a: a.astype(dtype)


def integer_to_float(source: Type, result: Type, rounding: str) -> Compute:
    """The nearest float, or the one that ``rounding`` says."""
    dtype = result.dtype
    if rounding == "rn":
        return lambda a: a.astype(dtype)

    def compute(a: HostArray) -> HostArray:
        nearest = a.astype(dtype)
        if source.bits < 64:
            total, error = a.astype(np.float64), np.float64(0)
        else:
            upper = (a >> 32).astype(np.float64) * 2.0**32
            total, error = two_sum(upper, (a & 0xFFFFFFFF).astype(np.float64))
        if result.bits == 64:
            return stepped(nearest, -np.sign(error), rounding)
        return stepped(nearest, np.sign(nearest - odd(total, error)), rounding)

    return compute


def float_to_integer(source: Type, result: Type, rounding: str) -> Compute:
    """Rounded to an integer and clamped to the range; of a NaN what the module says."""
    to_integer = TO_INTEGER[rounding]
    limits = np.iinfo(result.dtype)
    low, high = result.dtype.type(limits.min), result.dtype.type(limits.max)
    missing = result.dtype.type(0)
    if source.bits == 64 or result.bits == 64:
        missing = np.array(1 << (result.bits - 1), np.uint64).astype(result.dtype)[()]
    above = float(int(limits.max) + 1)  # a power of two, or for 64 bits the first float out of range
    below = float(limits.min)

    def compute(a: HostArray) -> HostArray:
        whole = to_integer(a).astype(np.float64)
        inside = (whole >= below) & (whole < above)
        if inside.all():
            return whole.astype(result.dtype)
        value = np.where(inside, whole, 0.0).astype(result.dtype)
        value = np.where(whole >= above, high, np.where(whole < below, low, value))
        return np.where(np.isnan(whole), missing, value)

    return compute


def _float_to_float(form: Form, source: Type, result: Type) -> Compute:
    dtype = result.dtype
    nan = CANONICAL[result.bits]

    def canonical(value: HostArray) -> HostArray:
        missing = np.isnan(value)
        if missing.any():
            value = np.where(missing, nan, value)
        return value

    if source.bits == result.bits:
        rounding = form.one_of(*TO_INTEGER)
        if rounding is None:
            return canonical if source.bits != 64 else lambda a: a
        to_integer = TO_INTEGER[rounding]
        return lambda a: canonical(to_integer(a))
    if source.bits < result.bits:
        if result.bits == 64:
            return lambda a: a.astype(dtype)
        return lambda a: canonical(a.astype(dtype))
    rounding = form.needs(*ROUNDINGS)

    def narrowed(a: HostArray) -> HostArray:
        nearest = a.astype(dtype)
        if rounding != "rn":
            nearest = stepped(nearest, np.sign(nearest.astype(a.dtype) - a), rounding)
        return canonical(nearest)

    return narrowed


def packed_or_brain(form: Form) -> Operation:
    """To and from bfloat16, and two floats packed into 32 bits; the first operand is the upper half."""
    b16, b32, f32 = TYPES["b16"], TYPES["b32"], TYPES["f32"]
    source = form.type_name("f32", "bf16")
    if source == "bf16":
        form.type_name("f32")
        return form.operation(brain, (b16,), f32)
    target = form.type_name("bf16", "bf16x2", "f16x2")
    rounding = form.needs("rn", "rz")
    relu = form.flag("relu")

    def half(a: HostArray) -> HostArray:
        a = np.where(a <= 0, np.float32(0), a) if relu else a
        if target != "f16x2":
            return to_brain(a, rounding)
        nearest = a.astype(np.float16)
        if rounding == "rz":
            nearest = stepped(nearest, np.sign(nearest.astype(np.float32) - a), rounding)
        return np.where(np.isnan(nearest), CANONICAL[16], nearest).view(np.uint16)

    if target == "bf16":
        return form.operation(half, (f32,), b16)

    def both(a: HostArray, b: HostArray) -> HostArray:
        result: HostArray = np.left_shift(half(a).astype(np.uint32), np.uint32(16)) | half(b)
        return result

    return form.operation(both, (f32, f32), b32)
