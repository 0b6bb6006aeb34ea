"""Memory that a launch is given: arrays of the host, by the addresses that the kernel knows them by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.ptx.machine.faults import fault
from solvergen.runtime.ptx.machine.program import Program
from solvergen.runtime.ptx.machine.regions import Region


@dataclass(frozen=True, eq=False, slots=True)
class Buffer:
    """``data``: its bytes, uint8, one-dimensional. ``address``: where the kernel believes them to be, which
    need not be where they are. ``itemsize``: of its elements, for messages. ``written``: which bytes hold
    values, bool; None: all do. Bytes that don't may be written and then read."""

    name: str
    address: int
    data: HostArray
    writable: bool = True
    itemsize: int = 1
    written: HostArray | None = None

    @property
    def region(self) -> Region:
        """Its addresses."""
        return Region(self.name, self.address, len(self.data), self.writable)


@dataclass(frozen=True, eq=False, slots=True)
class Joined:
    """Buffers that overlap, seen as one region: gradients of several parameters may be one array."""

    region: Region
    buffers: tuple[Buffer, ...] = field(default=())


def joined(buffers: Sequence[Buffer], kernel: str) -> tuple[Joined, ...]:
    """Join buffers that overlap. Raises KernelFault where one of those is to be written."""
    found: list[Joined] = []
    for buffer in sorted((b for b in buffers if len(b.data)), key=lambda b: b.address):
        last = found[-1] if found else None
        if last is None or buffer.address >= last.region.end:
            found.append(Joined(buffer.region, (buffer,)))
            continue
        if buffer.writable or last.region.writable:
            raise fault(
                f"{last.region.name} and {buffer.name} share memory, and the kernel may write it",
                kernel=kernel,
                buffer=buffer.name,
            )
        end = max(last.region.end, buffer.address + len(buffer.data))
        names = (*last.buffers, buffer)
        name = " and ".join(b.name for b in names[:3]) + (" and others" if len(names) > 3 else "")
        begin = last.region.address
        found[-1] = Joined(Region(name, begin, end - begin, False), names)
    return tuple(found)


def variable_buffers(program: Program) -> tuple[Buffer, ...]:
    """Buffers for the variables in global and constant memory, with their initial values. Those in global
    memory keep what a launch leaves there if the next one is given the same buffers."""
    return tuple(
        Buffer(
            region.name,
            region.address,
            np.frombuffer(bytearray(variable.initial or bytes(region.nbytes)), np.uint8),
            region.writable,
        )
        for variable, region in program.variables.fixed
    )
