"""Atomic updates: threads take turns, one after the other.

``apply`` does for any number of threads what they would do one by one, in the order given. Where many threads
update few places the running results are computed by NumPy's ``accumulate``, which goes from first to last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.instructions.floats import flushed


@dataclass(frozen=True, slots=True)
class Change:
    """What an atomic makes of the old value and its operands, elementwise. ``running``: the ufunc that it is,
    where it is one of two operands."""

    compute: Callable[..., HostArray]
    running: np.ufunc | None = None


def apply(values: HostArray, places: HostArray, operands: tuple[HostArray, ...], change: Change) -> HostArray:
    """Change ``values[places]`` for one access after the other; returns what each found there."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    begins = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    counts = np.diff(np.append(begins, len(ordered)))
    found = np.empty(len(places), values.dtype)
    if change.running is not None and len(begins) < counts.max(initial=0):
        for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
            turns = order[begin : begin + count]
            place = ordered[begin]
            sequence = np.concatenate((values[place : place + 1], operands[0][turns]))
            results = change.running.accumulate(sequence)
            found[turns] = results[:-1]
            values[place] = results[-1]
        return found
    for turn in range(int(counts.max(initial=0))):
        first = begins[counts > turn] + turn  # the turn-th access to every place that has so many
        who = order[first]
        old = values[ordered[first]]
        found[who] = old
        values[ordered[first]] = change.compute(old, *(operand[who] for operand in operands))
    return found


def _flushing_add(a: HostArray, b: HostArray) -> HostArray:
    return flushed(flushed(a) + flushed(b))


def _increment(old: HostArray, bound: HostArray) -> HostArray:
    return np.where(old >= bound, np.zeros_like(old), old + old.dtype.type(1))


def _decrement(old: HostArray, bound: HostArray) -> HostArray:
    return np.where((old == 0) | (old > bound), bound, old - old.dtype.type(1))


def _exchange(old: HostArray, new: HostArray) -> HostArray:
    return new


def _compare_and_swap(old: HostArray, expected: HostArray, new: HostArray) -> HostArray:
    return np.where(old == expected, new, old)


_INTEGERS = ("u32", "s32", "u64", "s64")
_BITS = ("b32", "b64")

CHANGES: dict[str, tuple[tuple[str, ...], Change, int]] = {
    "add": (("u32", "s32", "u64", "f32", "f64"), Change(np.add, np.add), 1),
    "min": (_INTEGERS, Change(np.minimum, np.minimum), 1),
    "max": (_INTEGERS, Change(np.maximum, np.maximum), 1),
    "and": (_BITS, Change(np.bitwise_and, np.bitwise_and), 1),
    "or": (_BITS, Change(np.bitwise_or, np.bitwise_or), 1),
    "xor": (_BITS, Change(np.bitwise_xor, np.bitwise_xor), 1),
    "exch": (_BITS, Change(_exchange), 1),
    "cas": (("b16", *_BITS), Change(_compare_and_swap), 2),
    "inc": (("u32",), Change(_increment), 1),
    "dec": (("u32",), Change(_decrement), 1),
}
"""Operations of ``atom`` and ``red`` (PTX ISA, "atom", "red"): the
types, what they do, and how many operands they take besides the address."""

FLUSHING_ADD = Change(_flushing_add)
"""``add.f32`` in global memory: there, and only there, subnormal operands and results count as zeros."""


def change_of(operation: str, kind: str, space: str) -> tuple[Change, int] | None:
    """How ``operation`` on type ``kind`` in a state space changes memory, and its number of operands; None
    for what isn't there."""
    if operation not in CHANGES or kind not in CHANGES[operation][0]:
        return None
    change, operands = CHANGES[operation][1:]
    if operation == "add" and kind == "f32" and space != "shared":
        change = FLUSHING_ADD
    return change, operands
