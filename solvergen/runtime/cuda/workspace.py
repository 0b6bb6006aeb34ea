"""A staged rule's workspace on a GPU. Nothing in it is copied to the host unless ``read`` asks for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from solvergen.errors import CompilerBug
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.cuda.kernels import Kernels
from solvergen.runtime.cuda.lines import DeviceLines
from solvergen.runtime.cuda.reduction import Column, Reduction
from solvergen.runtime.cuda.starting import Memory, Region, Starter
from solvergen.runtime.definition import Definition, Rank
from solvergen.runtime.lines import geometry_table
from solvergen.runtime.workspace import KernelWorkspace


class CudaWorkspace(KernelWorkspace):
    """See ``KernelWorkspace``; the arrays are those of ``HostWorkspace``.

    ``total_size`` and ``leader`` are of the step that was begun last.
    """

    def __init__(
        self,
        definition: Definition,
        shapes: Sequence[tuple[int, ...]],
        starter: Starter,
        kernels: Kernels,
        blocks: Sequence[int] | None = None,
    ) -> None:
        """``shapes`` and ``blocks``: of each tensor, by position, the latter 1 by default. Raises
        KernelBuildError."""
        super().__init__(definition)
        self.reductions = max(1, definition.n_reductions)
        """Columns of the table of totals."""
        self.total_size = 0.0
        self.leader = 0
        self.starter = starter
        self._device = starter.device
        self._count = len(shapes)
        self._n_states = max(1, len(definition.device_states))
        self._n_shared = max(1, len(definition.shared_states))
        self._present = 0
        clears = definition.reduces_over_all
        self._memory = Memory(
            starter.device,
            sizes=np.array([math.prod(shape) for shape in shapes], np.float64),
            totals=np.zeros((self._count, self.reductions)),
            zeros=np.zeros((self._count, self.reductions) if clears else 0),
            over_all=np.zeros(self.reductions),
            values=self._count * max(1, definition.n_values),
            states=np.zeros((self._count, self._n_states)),
            shared=np.zeros((2, self._n_shared)),
        )
        self.lines: DeviceLines | None = None
        if definition.has_lines:
            self.lines = DeviceLines(definition, geometry_table(definition.view, shapes, blocks), starter)
        self._all: dict[int, Reduction] = {}
        for number, one in enumerate(definition.passes):
            columns = [
                Column(one.first + place, one.first + place, kind == "max_abs")
                for place, (kind, over) in enumerate(zip(one.kinds, one.over, strict=True))
                if over == "all"
            ]
            if columns:
                kernel = kernels.reduce(starter.device)
                self._all[number] = Reduction(starter, kernel, [self._count], [0], columns)

    def totals(self, *, writable: bool = False) -> Region:
        """The totals of tensors, a row each."""
        return self._memory.region("totals", "the tensors' totals", writable=writable)

    def over_all(self, *, writable: bool = False) -> Region:
        """The totals over all tensors."""
        return self._memory.region("over_all", "the totals over all tensors", writable=writable)

    def sizes(self) -> Region:
        """The tensors' numbers of elements."""
        return self._memory.region("sizes", "the table of sizes")

    def values(self, *, writable: bool = False) -> Region:
        """What stages compute for passes and later stages, a row a tensor."""
        return self._memory.region("values", "the scalars of stages", writable=writable)

    def states(self, *, writable: bool = False) -> Region:
        """The tensors' scalar states, a row each."""
        return self._memory.region("states", "the scalar states", writable=writable)

    def shared_now(self) -> Region:
        """The present shared states."""
        return self._shared(self._present, "the shared states")

    def shared_new(self) -> Region:
        """The row that takes the new ones."""
        return self._shared(1 - self._present, "the new shared states", writable=True)

    def begin(self, total_size: float, leader: int) -> None:
        """See ``KernelWorkspace``."""
        self.total_size, self.leader = total_size, leader
        if self._definition.reduces_over_all:
            totals = self.totals()
            self._device.copy(totals.address, self._memory.region("zeros", "").address, totals.nbytes)
        if self._definition.shared_states:
            new = self.shared_new()
            self._device.copy(new.address, self.shared_now().address, new.nbytes)

    def combine(self, number: int) -> None:
        """See ``KernelWorkspace``. One launch."""
        self._all[number].run(self.totals(), self.reductions, self.over_all(writable=True), self.reductions)

    def commit(self) -> None:
        """See ``KernelWorkspace``."""
        self._present = 1 - self._present

    def read(self) -> tuple[HostArray, HostArray]:
        """See ``Workspace``. Waits for the current stream."""
        states = np.zeros((self._count, self._n_states))
        shared = np.zeros(self._n_shared)
        self._device.download(states.reshape(-1).view(np.uint8), self.states().address)
        self._device.download(shared.view(np.uint8), self.shared_now().address)
        definition = self._definition
        return states[:, : len(definition.device_states)].copy(), shared[: len(definition.shared_states)]

    def write(self, states: HostArray, shared: HostArray) -> None:
        """See ``Workspace``. Waits for the current stream."""
        columns, length = len(self._definition.device_states), len(self._definition.shared_states)
        if states.shape != (self._count, columns) or shared.shape != (length,):
            raise CompilerBug(f"states of the shape {states.shape} and shared ones of {shared.shape}")
        held = [np.ascontiguousarray(states, np.float64), np.ascontiguousarray(shared, np.float64)]
        for array, region in zip(held, (self.states(), self.shared_now()), strict=True):
            if array.size:
                self._device.upload(region.address, array.reshape(-1).view(np.uint8))
        self._device.synchronize()  # they go away

    def read_lines(self) -> Mapping[Rank, HostArray]:
        """See ``Workspace``. Waits for the current stream."""
        if self.lines is None:
            return super().read_lines()
        found: dict[Rank, HostArray] = {}
        for rank, names in self._definition.line_states.items():
            table = np.zeros((self.lines.counts[rank], self.lines.widths[rank, "states"]))
            if table.size:
                self._device.download(table.reshape(-1).view(np.uint8), self.lines.states(rank).address)
            found[rank] = table[:, : len(names)].copy()
        return found

    def read_line_state(self, rank: Rank, lines: slice, column: int) -> HostArray:
        """See ``Workspace``. Waits for the current stream."""
        if self.lines is None:
            return super().read_line_state(rank, lines, column)
        first, last, _ = lines.indices(self.lines.counts[rank])
        table = np.zeros((last - first, self.lines.widths[rank, "states"]))
        if table.size:
            begin = self.lines.states(rank).address + first * table.strides[0]
            self._device.download(table.reshape(-1).view(np.uint8), begin)
        some: HostArray = table[:, column].copy()
        return some

    def write_lines(self, states: Mapping[Rank, HostArray]) -> None:
        """See ``Workspace``. Waits for the current stream."""
        if self.lines is None:
            super().write_lines(states)
            return
        held = []
        for rank, names in self._definition.line_states.items():
            shape = self.lines.counts[rank], len(names)
            if states[rank].shape != shape:
                raise CompilerBug(f"states of {rank} of the shape {states[rank].shape}, not {shape}")
            held.append((np.ascontiguousarray(states[rank], np.float64), self.lines.states(rank)))
        for array, region in held:
            if array.size:
                self._device.upload(region.address, array.reshape(-1).view(np.uint8))
        self._device.synchronize()  # they go away

    def _shared(self, row: int, what: str, *, writable: bool = False) -> Region:
        whole = self._memory.region("shared", what)
        nbytes = 8 * self._n_shared
        return Region(what, whole.address + row * nbytes, nbytes, 8, writable)
