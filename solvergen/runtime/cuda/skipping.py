"""Steps that a flag on the GPU may leave out (``found_inf``): the host doesn't wait to know."""

from __future__ import annotations

import contextlib
from typing import cast

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import BoundLauncher
from solvergen.runtime.cuda.device import Device, Event, Kernel
from solvergen.runtime.cuda.kernels import Kernels
from solvergen.runtime.cuda.launch import BoundTensors, TableSet
from solvergen.runtime.cuda.starting import Region

NAME = "the flag that leaves the step out"


class CudaSkip:
    """What one step asks: a number on the GPU, which is not 0 if the step is to be left out. See ``Skip``."""

    def __init__(self, region: Region, tables: TableSet, answer: HostArray, known: Event) -> None:
        self.region = region
        self._tables = tables
        self._answer = answer
        self._known = known

    def guard(self, launcher: BoundLauncher) -> None:
        """See ``Skip``."""
        cast("BoundTensors", launcher).unless(self)

    def used(self) -> None:
        """A kernel that asks the number has been given to the stream."""
        self._tables.used()

    def is_set(self) -> bool:
        """See ``Skip``. Waits for what came before the step, not for the step."""
        self._known.wait()
        return bool(self._answer.view(np.int32)[0])


class CudaFlags:
    """Makes of flags what kernels ask. Two at a time: one step's while the host looks at the last."""

    def __init__(self, device: Device, kernels: Kernels) -> None:
        self.number = device.number
        self._device = device
        self._kernels = kernels
        self._sets = (TableSet(device), TableSet(device))
        self._answers = (device.staging(4), device.staging(4))
        self._known = (device.event(), device.event())
        self._turn = 0
        self._kernel: Kernel | None = None

    def skip(self, address: int, dtype: np.dtype[np.generic]) -> CudaSkip:
        """``address``: of the flag, one number of ``dtype``."""
        if self._kernel is None:
            self._kernel = self._kernels.flag(self._device)
        turn, self._turn = self._turn, 1 - self._turn
        tables, answer = self._sets[turn], self._answers[turn]
        (place,) = tables.fill(np.zeros(1, np.int32))
        arguments = (
            np.uint64(address),
            np.int32(dtype.itemsize),
            np.int32(dtype.kind not in "biu"),
            np.uint64(place),
        )
        self._device.launch(self._kernel, 1, 32, arguments)
        tables.used()
        self._device.fetch(answer, place)
        self._known[turn].record()
        return CudaSkip(Region(NAME, place, 4, 4), tables, answer, self._known[turn])

    def __del__(self) -> None:
        # As of launches: page-locked memory isn't given back while the GPU still reads or writes it.
        with contextlib.suppress(Exception):
            for waited in (*self._sets, *self._known):
                waited.wait()
