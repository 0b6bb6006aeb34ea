"""Special registers: what a thread can ask about itself and its launch (PTX ISA, "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.clock import WARP
from solvergen.runtime.ptx.machine.faults import Shape
from solvergen.runtime.ptx.types import TYPES, Type


@dataclass(frozen=True, slots=True)
class Threads:
    """Threads of a launch: their blocks, as numbers in the grid, and their places in them, int64."""

    grid: Shape
    block: Shape
    blocks: HostArray
    inner: HostArray


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """A special register's type, and its values for threads (of length 1 where they are all the same)."""

    type: Type
    values: Callable[[Threads], HostArray]


def _along(
    axis: str, index: Callable[[Threads], HostArray], shape: Callable[[Threads], Shape]
) -> SpecialRegister:
    def values(threads: Threads) -> HostArray:
        extent, place = shape(threads), index(threads)
        if getattr(extent, axis) == 1:
            return np.zeros(1, np.uint32)
        before = {"x": 1, "y": extent.x, "z": extent.x * extent.y}[axis]
        found = place // before % getattr(extent, axis)
        return _shared(found.astype(np.uint32))

    return SpecialRegister(TYPES["u32"], values)


def _extent(axis: str, shape: Callable[[Threads], Shape]) -> SpecialRegister:
    return SpecialRegister(TYPES["u32"], lambda threads: np.array([getattr(shape(threads), axis)], np.uint32))


def _shared(values: HostArray) -> HostArray:
    """Of length 1 if all are the same."""
    return values[:1] if values[0] == values[-1] and (values == values[0]).all() else values


def _lane(threads: Threads) -> HostArray:
    return (threads.inner % WARP).astype(np.uint32)


def _bits(compute: Callable[[HostArray], HostArray]) -> SpecialRegister:
    """A mask of lanes, from a lane's own bit."""
    return SpecialRegister(
        TYPES["b32"],
        lambda threads: (compute(np.uint64(1) << _lane(threads).astype(np.uint64))).astype(np.uint32),
    )


_ALL = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)

SPECIALS: dict[str, SpecialRegister] = {
    **{f"%tid.{axis}": _along(axis, lambda t: t.inner, lambda t: t.block) for axis in "xyz"},
    **{f"%ctaid.{axis}": _along(axis, lambda t: t.blocks, lambda t: t.grid) for axis in "xyz"},
    **{f"%ntid.{axis}": _extent(axis, lambda t: t.block) for axis in "xyz"},
    **{f"%nctaid.{axis}": _extent(axis, lambda t: t.grid) for axis in "xyz"},
    "%laneid": SpecialRegister(TYPES["u32"], _lane),
    "%warpid": SpecialRegister(TYPES["u32"], lambda threads: (threads.inner // WARP).astype(np.uint32)),
    "%lanemask_eq": _bits(lambda bit: bit),
    "%lanemask_lt": _bits(lambda bit: bit - _ONE),
    "%lanemask_le": _bits(lambda bit: (bit << _ONE) - _ONE),
    "%lanemask_gt": _bits(lambda bit: ~((bit << _ONE) - _ONE) & _ALL),
    "%lanemask_ge": _bits(lambda bit: ~(bit - _ONE) & _ALL),
}
"""Every special register that is known, by name."""


def why_unknown(name: str) -> str:
    """Why a special register can't be read here."""
    if name.startswith(
        ("%clock", "%globaltimer", "%smid", "%nsmid", "%gridid", "%nwarpid", "%pm", "%envreg")
    ):
        return "depends on the GPU at hand, so results that come from it can't be known"
    return "is a special register that the interpreter doesn't know"
