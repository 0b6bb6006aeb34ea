"""A prepared launch: the tables of the tensors on each GPU, and what happens in a step.

A step writes the pointers and the scalars into page-locked memory, copies them to the GPU in one go and
launches the kernel, all in the current stream. It waits for nothing: there are two sets of tables, and
the set that is written was last used two steps ago.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.cuda.device import Device, Kernel
from solvergen.runtime.cuda.kernels import Kernels
from solvergen.runtime.cuda.tables import MAX_BLOCKS, THREADS, chunks_of, lanes_of
from solvergen.runtime.dtypes import STORAGE_TYPES, numpy_dtype

if TYPE_CHECKING:
    from solvergen.runtime.cuda.skipping import CudaSkip


@dataclass(frozen=True)
class Access:
    """How a launcher reads arrays of one kind.

    ``facts``: dtype, shape, number of the GPU, strides; asked of every gradient in every step.
    ``contiguous``: whether C-contiguous; slower, and asked only where strides alone don't tell.
    ``address``: of the first element. ``view``: any array as one of this kind over the same memory, or None.
    """

    type: type[Any]
    facts: Callable[[Array], tuple[Any, ...]]
    contiguous: Callable[[Array], bool]
    address: Callable[[Array], int]
    view: Callable[[object], Array | None]


class BoundTensors:
    """The tensors of a plan: where their buffers lie, and the gradients that are bound to them."""

    def __init__(self, plan: LaunchPlan, access: Access) -> None:
        self._access = access
        self._itemsize = STORAGE_TYPES[plan.grad_dtype].itemsize
        dtype = numpy_dtype(plan.grad_dtype)
        facts = [access.facts(tensor.param) for tensor in plan.tensors]
        # A gradient is to be as its parameter is, but for the dtype.
        self._expected = [
            (dtype, shape, number, _strides(shape, dtype.itemsize)) for _, shape, number, _ in facts
        ]
        self._sizes = np.array([tensor.param.size for tensor in plan.tensors], np.int64)
        n_buffers = 2 + len(plan.definition.array_states) + len(plan.definition.carried)
        self._pointers = np.zeros((len(facts), n_buffers), np.uint64)
        for i, tensor in enumerate(plan.tensors):
            for j, array in enumerate((tensor.param, None, *tensor.states, *tensor.carried)):
                if array is not None:
                    self._pointers[i, j] = access.address(array)
        self._owned = plan.owned  # addresses are unique over all GPUs
        self._numbers = np.array([number for _, _, number, _ in facts])
        self._gradients: tuple[Any, ...] = ()
        self._skip: CudaSkip | None = None

    def unless(self, skip: CudaSkip | None) -> None:
        """What is launched until ``release`` does nothing if this is set."""
        self._skip = skip

    def bind(self, gradients: Sequence[object]) -> bool:
        """Remember the gradients if each is just what the plan expects."""
        if set(map(type, gradients)) != {self._access.type}:
            viewed = [self._access.view(gradient) for gradient in gradients]
            if any(gradient is None for gradient in viewed):
                return False
            gradients = viewed
        facts = list(map(self._access.facts, gradients))
        if facts != self._expected and not self._fits(facts, gradients):
            return False
        addresses = np.fromiter(map(self._access.address, gradients), np.int64, len(gradients))
        if (addresses[self._sizes > 0] % self._itemsize).any():
            return False
        if self._owned.meet(addresses, self._sizes * self._itemsize).any():
            return False
        self._gradients = tuple(gradients)  # so that their memory isn't given to others before the step
        self._pointers[:, 1] = addresses
        return True

    def _fits(self, facts: list[tuple[Any, ...]], gradients: Sequence[Any]) -> bool:
        """The same without strides, which may be anything along axes of length one."""
        return [fact[:3] for fact in facts] == [fact[:3] for fact in self._expected] and all(
            map(self._access.contiguous, gradients)
        )

    def release(self) -> None:
        """Forget the gradients. Their memory may be used again in the stream's order."""
        self._gradients = ()
        self._skip = None


def _strides(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """Of a C-contiguous array, in bytes."""
    strides = []
    for length in reversed(shape):
        strides.append(itemsize)
        itemsize *= length
    return tuple(reversed(strides))


class CudaLauncher(BoundTensors):
    """Tensors of equal dtypes and options, on one GPU or several. See ``Launcher``."""

    def __init__(
        self, plan: LaunchPlan, devices: Callable[[int], Device], kernels: Kernels, access: Access
    ) -> None:
        """Compiles the kernel or takes it from the cache. Raises KernelBuildError."""
        super().__init__(plan, access)
        self._parts = [
            (members, _Part(plan, self._sizes[members], devices(int(number)), kernels))
            for number in np.unique(self._numbers)
            for members in [np.flatnonzero(self._numbers == number)]
        ]

    @property
    def chunk_count(self) -> int:
        """Entries of the tables of chunks, over all GPUs."""
        return sum(part.chunk_count for _, part in self._parts)

    def finite(self) -> bool:
        """Whether all bound gradients are finite. Reads them once and waits for the answer."""
        answers = [part.finite(self._pointers[members, 1]) for members, part in self._parts]
        return all(answers)

    def launch(self, table: HostArray, rows: HostArray) -> None:
        """Start the update. Returns before it is done."""
        for members, part in self._parts:
            part.skip = self._skip
            part.launch(self._pointers[members], table, rows[members])
        if self._skip is not None:
            self._skip.used()


class _Part:
    """The tensors of a plan that lie on one GPU."""

    def __init__(self, plan: LaunchPlan, sizes: HostArray, device: Device, kernels: Kernels) -> None:
        itemsizes = [STORAGE_TYPES[name].itemsize for name in (plan.param_dtype, plan.grad_dtype)]
        self._device = device
        self._load = functools.partial(
            kernels.update,
            device,
            plan.definition.folder,
            plan.param_dtype,
            plan.grad_dtype,
            plan.options,
        )
        self._kernel = self._load()
        self._skipping: Kernel | None = None  # few programs have steps that are left out
        self.skip: CudaSkip | None = None
        chunks = chunks_of(sizes, lanes_of(itemsizes))
        self.chunk_count = len(chunks)
        self._blocks = min(len(chunks), MAX_BLOCKS)
        self._chunks = device.allocate(max(1, chunks.nbytes))
        if self.chunk_count:
            device.upload(self._chunks.ptr, chunks.view(np.uint8))
            device.synchronize()  # the table is an ordinary array of ours that goes away
        self._sets = (TableSet(device), TableSet(device))
        self._turn = 0
        self._search = FiniteSearch(device, kernels, plan.grad_dtype)

    def launch(self, pointers: HostArray, table: HostArray, rows: HostArray) -> None:
        if not self.chunk_count:
            return
        tables = self._sets[self._turn]
        self._turn ^= 1
        pointers_at, table_at, rows_at = tables.fill(pointers, table, rows)
        arguments: tuple[np.generic, ...] = (
            np.uint64(pointers_at),
            np.uint64(rows_at),
            np.uint64(table_at),
            np.uint64(self._chunks.ptr),
            np.int64(self.chunk_count),
        )
        kernel = self._kernel
        if self.skip is not None:
            kernel = self._skipping = self._skipping or self._load(skips=True)
            arguments = (*arguments, np.uint64(self.skip.region.address))
        self._device.launch(kernel, self._blocks, THREADS, arguments)
        tables.used()

    def finite(self, gradients: HostArray) -> bool:
        if not self.chunk_count:
            return True
        return self._search(self._sets[self._turn], gradients, self._chunks.ptr, self.chunk_count)

    def __del__(self) -> None:
        # The GPU may be at work still when an optimizer is dropped right after a step, and the memory that
        # it reads would go to others. At the interpreter's end the driver may be gone, and its work too.
        with contextlib.suppress(Exception):
            for tables in self._sets:
                tables.wait()


class FiniteSearch:
    """Looks through gradients for elements that aren't finite."""

    def __init__(self, device: Device, kernels: Kernels, grad_dtype: str) -> None:
        self._device = device
        self._kernels = kernels
        self._grad_dtype = grad_dtype
        self._kernel: Kernel | None = None

    def __call__(self, tables: TableSet, gradients: HostArray, chunks: int, chunk_count: int) -> bool:
        """Whether all are finite. Waits for the answer.

        Args:
            tables: where the table of pointers goes.
            gradients: their addresses.
            chunks: the address of the table of chunks.
            chunk_count: its length, at least 1.
        """
        if self._kernel is None:  # few programs ask
            self._kernel = self._kernels.finite(self._device, self._grad_dtype)
        found = np.zeros(1, np.int32)
        pointers_at, found_at = tables.fill(gradients, found)
        arguments = (
            np.uint64(pointers_at),
            np.uint64(chunks),
            np.int64(chunk_count),
            np.uint64(found_at),
        )
        blocks = min(chunk_count, MAX_BLOCKS)
        self._device.launch(self._kernel, blocks, THREADS, arguments)
        tables.used()
        self._device.download(found, found_at)
        return not found[0]


class TableSet:
    """A stretch of page-locked memory and its copy on the GPU, used by one launch at a time."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._event = device.event()
        self._host = np.empty(0, np.uint8)
        self._memory: Any = None

    def fill(self, *tables: HostArray) -> list[int]:
        """Put the tables into the GPU's memory, in stream order, and return the address of each."""
        self.wait()
        offsets, end = [], 0
        for table in tables:
            offsets.append(end)
            end += -(-table.nbytes // 16) * 16
        if end > len(self._host):
            capacity = max(end, 2 * len(self._host), 1024)
            self._host = self._device.staging(capacity)
            self._memory = self._device.allocate(capacity)
        for offset, table in zip(offsets, tables, strict=True):
            self._host[offset : offset + table.nbytes] = (
                np.ascontiguousarray(table).reshape(-1).view(np.uint8)
            )
        address = self._memory.ptr
        self._device.upload(address, self._host[:end])
        return [address + offset for offset in offsets]

    def wait(self) -> None:
        """Return when the launch that used this memory last is done."""
        self._event.wait()

    def used(self) -> None:
        """The launch that reads the tables has been given to the stream."""
        self._event.record()
