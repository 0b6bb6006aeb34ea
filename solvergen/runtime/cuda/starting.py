"""Kernels on their way to a device: what a launch hands over, with names for whoever watches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.cuda.device import Device, Kernel
from solvergen.runtime.cuda.tables import THREADS


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of device memory that an argument points to. ``writable``: by the kernel."""

    name: str
    address: int
    nbytes: int
    itemsize: int = 8
    writable: bool = False


@dataclass(frozen=True, eq=False, slots=True)
class Lent:
    """An array that isn't the device's own: a parameter, a state, a gradient. ``region``: where it is."""

    region: Region
    array: Any


@dataclass(frozen=True, slots=True)
class Bound:
    """The tensors that a launch works on, and their gradients."""

    plan: LaunchPlan
    gradients: Sequence[Any]


class Starter:
    """Gives kernels to a device's current stream. ``skip``: what those of this step ask, if anything."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.skip: Region | None = None

    def start(
        self,
        kernel: Kernel,
        text: Path,
        blocks: int,
        arguments: Sequence[Region | Lent | np.generic],
        bound: Bound | None = None,
    ) -> None:
        """Run a kernel.

        Args:
            kernel: as the device loaded it.
            text: the file that it was compiled from.
            blocks: how many, of ``THREADS`` threads.
            arguments: numbers, of the kernel's types, and what is handed over by its address.
            bound: the tensors that the table of pointers among the arguments leads to, if one does.
        """
        values = [given if isinstance(given, np.generic) else _address(given) for given in arguments]
        self.device.launch(kernel, blocks, THREADS, values)


def _address(given: Region | Lent) -> np.generic:
    region = given.region if isinstance(given, Lent) else given
    address: np.generic = np.uint64(region.address)
    return address


class Memory:
    """Tables of float64 or of something else in one stretch of device memory."""

    def __init__(self, device: Device, **tables: HostArray | int) -> None:
        """``tables``: by name an array, which is uploaded, or how many float64 there is to be room for.

        Waits for the upload.
        """
        sizes = [8 * table if isinstance(table, int) else table.nbytes for table in tables.values()]
        begins = np.cumsum([0, *(-(-max(1, size) // 16) * 16 for size in sizes)]).tolist()
        self._memory = device.allocate(begins[-1])
        self._found: dict[str, tuple[int, int, int]] = {}
        for (name, table), begin, size in zip(tables.items(), begins, sizes, strict=False):
            address = self._memory.ptr + begin
            itemsize = 8 if isinstance(table, int) else table.itemsize
            self._found[name] = address, size, itemsize
            if not isinstance(table, int) and size:
                device.upload(address, np.ascontiguousarray(table).reshape(-1).view(np.uint8))
        device.synchronize()  # the arrays are ours and go away

    def region(self, name: str, what: str, *, writable: bool = False) -> Region:
        """The table of that name, called ``what`` in messages."""
        address, nbytes, itemsize = self._found[name]
        return Region(what, address, nbytes, itemsize, writable)
