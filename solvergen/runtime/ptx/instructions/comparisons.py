"""Comparison and selection: setp set selp slct.

PTX ISA, "Comparison and Selection Instructions". Comparisons of floats with a NaN are false, those that end
in ``u`` true; ``num`` says that neither is a NaN, ``nan`` that one is.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.floats import flushed
from solvergen.runtime.ptx.instructions.operation import Compute, Form, Operation
from solvergen.runtime.ptx.module import Pair
from solvergen.runtime.ptx.types import TYPES, Type

PRED = TYPES["pred"]
COMPARED = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
SELECTED = COMPARED

Compare = Callable[[HostArray, HostArray], HostArray]

_EQUALITY: dict[str, Compare] = {"eq": np.equal, "ne": np.not_equal}
_ORDER: dict[str, Compare] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED: dict[str, Compare] = {
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}
_FLOAT: dict[str, Compare] = {
    "eq": np.equal,
    "ne": lambda a, b: np.less(a, b) | np.greater(a, b),
    **_ORDER,
    "equ": lambda a, b: ~(np.less(a, b) | np.greater(a, b)),
    "neu": np.not_equal,
    "ltu": lambda a, b: ~np.greater_equal(a, b),
    "leu": lambda a, b: ~np.greater(a, b),
    "gtu": lambda a, b: ~np.less_equal(a, b),
    "geu": lambda a, b: ~np.less(a, b),
    "num": lambda a, b: np.equal(a, a) & np.equal(b, b),
    "nan": lambda a, b: np.not_equal(a, a) | np.not_equal(b, b),
}
_KINDS: dict[str, dict[str, Compare]] = {
    "bits": _EQUALITY,
    "signed": _EQUALITY | _ORDER,
    "unsigned": _EQUALITY | _ORDER | _UNSIGNED,
    "float": _FLOAT,
}
_COMBINE: dict[str, Compare] = {
    "and": np.logical_and,
    "or": np.logical_or,
    "xor": np.logical_xor,
}


def _comparison(form: Form) -> tuple[Compare, Type, Compare | None]:
    """The comparison, the type of what it compares, and what combines it with a predicate."""
    type = form.type(*COMPARED)
    known = _KINDS[type.kind]
    name = form.needs(*known)
    compare = known[name]
    if name == "nan" and len(set(form.instruction.operands[1:3])) == 1:
        compare = lambda a, _: np.not_equal(a, a)  # noqa: E731 - how compilers ask for a NaN, in one call
    if form.flag("ftz"):
        if type.name != "f32":
            form.unknown(".ftz")
        exact = compare
        compare = lambda a, b: exact(flushed(a), flushed(b))  # noqa: E731
    combine = form.one_of(*_COMBINE)
    return compare, type, None if combine is None else _COMBINE[combine]


def setp(form: Form) -> Operation:
    """``setp.op{.bool} p|q, a, b{, c}``: p whether a op b, q whether not, each combined with c if given."""
    compare, type, combine = _comparison(form)
    two = bool(form.instruction.operands) and isinstance(form.instruction.operands[0], Pair)
    compute: Compute
    if combine is None:

        def pair(a: HostArray, b: HostArray) -> tuple[HostArray, HostArray]:
            holds = compare(a, b)
            return holds, ~holds

        sources: tuple[Type, ...] = (type, type)
        compute = pair if two else compare
    else:
        join = combine

        def joined(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
            return join(compare(a, b), c)

        def joined_pair(a: HostArray, b: HostArray, c: HostArray) -> tuple[HostArray, HostArray]:
            holds = compare(a, b)
            return join(holds, c), join(~holds, c)

        sources = (type, type, PRED)
        compute = joined_pair if two else joined
    return form.operation(compute, sources, PRED, *((PRED,) if two else ()))


def set_(form: Form) -> Operation:
    """``set``: as setp, but an integer of all ones or 1.0 for true, 0 for false."""
    compare, type, combine = _comparison(form)
    result = form.type("u32", "s32", "f32")
    true = np.float32(1) if result.kind == "float" else np.array(-1).astype(result.dtype)[()]
    false = result.dtype.type(0)

    def plain(a: HostArray, b: HostArray) -> HostArray:
        return np.where(compare(a, b), true, false)

    if combine is None:
        return form.operation(plain, (type, type), result)
    join = combine

    def joined(a: HostArray, b: HostArray, c: HostArray) -> HostArray:
        return np.where(join(compare(a, b), c), true, false)

    return form.operation(joined, (type, type, PRED), result)


def selp(form: Form) -> Operation:
    """``selp d, a, b, p``: a where p, else b."""
    type = form.type(*SELECTED)
    return form.operation(lambda a, b, p: np.where(p, a, b), (type, type, PRED), type)


def slct(form: Form) -> Operation:
    """``slct d, a, b, c``: a where c >= 0, else b. -0.0 counts as 0, a NaN selects b.

    ``.ftz`` takes a subnormal c for a zero, so that it selects a.
    """
    chooser = form.type("s32", "f32")
    ftz = form.flag("ftz")
    if ftz and chooser.kind != "float":
        form.unknown(".ftz")
    type = form.type(*SELECTED)
    compute: Compute = lambda a, b, c: np.where((flushed(c) if ftz else c) >= 0, a, b)  # noqa: E731
    return form.operation(compute, (type, type, chooser), type)
