"""min and max of floats.

PTX ISA, "Floating-Point Instructions: min, max". Of a number and a NaN the result is the number, with
``.NaN`` it is a NaN; -0 is less than +0. Where the result is a NaN it has no payload and, unlike those that
arithmetic in double precision makes (``nans``), no sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.floats import modified, read_type
from solvergen.runtime.ptx.instructions.nans import CANONICAL
from solvergen.runtime.ptx.instructions.operation import Compute, Decoder, Form, Operation
from solvergen.runtime.ptx.types import Type

Binary = Callable[[HostArray, HostArray], HostArray]

_NAN = {32: CANONICAL[32], 64: np.uint64(0x7FF8 << 48).view(np.float64)}


def _chosen(before: Binary, tie: Binary, type: Type, strict: bool) -> Binary:
    """The lesser or greater of two; ``strict``: a NaN where either is one."""
    bits = np.dtype(f"u{type.nbytes}")

    def compute(a: HostArray, b: HostArray) -> HostArray:
        # Equal operands differ in the sign of zero at most.
        equal = tie(a.view(bits), b.view(bits)).view(type.dtype)
        chosen = np.where(before(a, b) | (b != b), a, b)  # np.fmin makes signalling NaNs quiet instead
        result: HostArray = np.where(a == b, equal, chosen)
        missing = np.isnan(a) | np.isnan(b) if strict else np.isnan(result)
        if missing.any():
            result[np.broadcast_to(missing, result.shape)] = _NAN[type.bits]
        return result

    return compute


def _extremum(before: Binary, tie: Binary) -> Decoder:
    """The decoder of min or max: of two operands or, in single precision, three.

    ``.abs`` compares magnitudes and gives one; ``.xorsign.abs`` gives it the sign of a*b.
    """

    def decode(form: Form) -> Operation:
        type, (ftz, strict, xorsign, magnitudes) = read_type(form, "ftz", "NaN", "xorsign", "abs")
        count = 3 if type.bits == 32 and len(form.instruction.operands) == 4 else 2
        if (xorsign and (count == 3 or not magnitudes)) or (magnitudes and count == 2 and not xorsign):
            form.unknown(".abs")
        of_two = _chosen(before, tie, type, strict)

        def compute(*operands: HostArray) -> HostArray:
            compared = [np.abs(x) for x in operands] if magnitudes else operands
            result = reduce(of_two, compared)
            if xorsign:
                sign = np.signbit(operands[0]) != np.signbit(operands[1])
                result = np.where(sign & ~np.isnan(result), -result, result)
            return result

        plain: Compute = of_two if count == 2 and not magnitudes else compute
        return form.operation(modified(plain, ftz), (type,) * count, type)

    return decode


min = _extremum(np.less, np.bitwise_or)
max = _extremum(np.greater, np.bitwise_and)
