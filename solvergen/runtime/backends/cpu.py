"""The native backend: C kernels over host arrays, on several threads, all tensors in one call."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from solvergen.errors import BackendUnavailable, CompilerBug
from solvergen.runtime import native
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.buffers import (
    ARRAY_TYPES,
    HostArrays,
    address_of,
    converted,
    may_be_written,
    state_dtype,
)
from solvergen.runtime.definition import Definition, Initial
from solvergen.runtime.dtypes import compute_dtype, numpy_dtype
from solvergen.runtime.kernel_interface import chunk_table, update_defines
from solvergen.runtime.native.build import load
from solvergen.runtime.native.library import FiniteJob, Gather, Job, function_address, library
from solvergen.runtime.workspace import HostWorkspace

if TYPE_CHECKING:
    from solvergen.runtime.backends.cpu_staged import StagedCpuLauncher

CHUNK_SIZE = 1 << 14
"""Elements of a chunk at most: small enough that threads end together, large enough that claiming one
costs nothing beside it."""

SMALL = 1 << 15
"""A job with fewer elements is not worth waking a thread for."""

TENSOR_COST = 64
"""What a chunk costs besides its elements, in elements."""

LINE = 64
"""Bytes of a cache line, and of the widest vector."""

PAGE = 4096
"""Bytes of the smallest pages."""

STAGGERED = 1 << 18
"""States of at least so many bytes are placed apart from their parameter and from one another."""


class CpuBackend(HostArrays):
    """Compiles kernels for this machine and runs them on NumPy arrays.

    Raises:
        BackendUnavailable: there is no C compiler; the text says what to install.
    """

    name = "cpu"
    table: Literal["kernel", "reference"] = "kernel"

    def __init__(self) -> None:
        reason = native.available()
        if reason is not None:
            raise BackendUnavailable(f"backend 'cpu': {reason}; or use backend='numpy'")
        self._places = 0

    def allocate(self, param: HostArray, init: Initial, dtype: str | None = None) -> HostArray:
        """A new array of the parameter's shape and compute type (or ``dtype``), filled with ``init``.

        Large arrays of equal size usually begin at the same place of a page, one page more than a power of
        two apart. Read side by side, they then compete for the same few places of the first cache (by
        number of the line, and by the hash of the address by which some processors guess the way): Adam
        took twice as long. So a large state begins elsewhere in its page, but at the same place of a line
        as the parameter does, so that where one is aligned all are.
        """
        chosen = state_dtype(param, dtype)
        nbytes = param.size * chosen.itemsize
        if nbytes < STAGGERED:
            return self._filled(param, init, chosen)
        self._places = self._places % 7 + 1
        head = elements_before_line(param)
        line = address_of(param) + head * param.itemsize
        memory = np.zeros(nbytes + PAGE, np.uint8)  # touched only where it is written
        skip = (line + self._places * PAGE // 8 - head * chosen.itemsize - address_of(memory)) % PAGE
        state: HostArray = memory[skip : skip + nbytes].view(chosen).reshape(param.shape)
        if init == "param":
            state[...] = converted(param, chosen)
        elif init != 0.0 or math.copysign(1.0, init) < 0.0:
            with np.errstate(all="ignore"):
                state[...] = init
        return state

    def workspace(
        self, definition: Definition, params: Sequence[HostArray], blocks: Sequence[int] | None = None
    ) -> HostWorkspace:
        """A workspace whose reductions over all tensors are native."""
        from solvergen.runtime.backends.cpu_staged import CpuWorkspace

        shapes = [param.shape for param in params]
        return CpuWorkspace(definition, [param.size for param in params], shapes, blocks)

    def prepare(self, plan: LaunchPlan) -> CpuLauncher | StagedCpuLauncher:
        """Compile the kernel or load it, and build the tables of pointers and chunks."""
        kernel = load_kernel(plan)
        if not plan.definition.is_staged:
            return CpuLauncher(plan, kernel)
        from solvergen.runtime.backends.cpu_staged import StagedCpuLauncher

        return StagedCpuLauncher(plan, kernel)


def load_kernel(plan: LaunchPlan) -> ctypes.CDLL:
    """The kernel of a plan's definition for its dtypes and options."""
    folder = Path(plan.definition.folder)
    defines = update_defines(plan.param_dtype, plan.grad_dtype, plan.options)
    text = (folder / "kernel.c").read_text(encoding="utf-8")
    return load({"kernel.c": text}, [f"{name}={value}" for name, value in defines.items()])


class CpuTensors:
    """The tensors of a plan: their pointers, their chunks, and the gradients that are bound to them.

    Everything whose size depends on the tensors is allocated here, once.
    """

    def __init__(self, plan: LaunchPlan) -> None:
        self._library = library()
        self._plan = plan
        self._gradients: list[Any] | None = None
        self._compute = compute_dtype(plan.param_dtype)
        self._columns = max(1, len(plan.definition.table))
        sizes = np.array([tensor.param.size for tensor in plan.tensors], np.int64)

        # Pointers: param, gradient, states, what is carried; 0 where a state doesn't exist.
        n_buffers = 2 + len(plan.definition.array_states) + len(plan.definition.carried)
        self._pointers = np.zeros((len(plan.tensors), n_buffers), np.uintp)
        for row, tensor in zip(self._pointers, plan.tensors, strict=True):
            row[0] = address_of(tensor.param)
            arrays = (*tensor.states, *tensor.carried)
            row[2:] = [0 if array is None else address_of(array) for array in arrays]

        heads = np.array([elements_before_line(tensor.param) for tensor in plan.tensors], np.int64)
        self._chunks = chunk_table(sizes, CHUNK_SIZE, heads)
        self._units = unit_table(self._chunks["count"], CHUNK_SIZE)
        self._helpers = self._library.helpers() if int(sizes.sum()) >= SMALL else 0
        self._sweep = self._work_of(self._units)

        self._found = np.zeros(1, np.int32)
        self._finite_job = FiniteJob(
            address_of(self._pointers), address_of(self._chunks), n_buffers, address_of(self._found)
        )
        self._gather, self._gather_keeps = self._planned_gradients(sizes)
        self._gather_arguments = (ctypes.byref(self._library.python), ctypes.byref(self._gather))

    def _planned_gradients(self, sizes: HostArray) -> tuple[Gather, tuple[HostArray, ...]]:
        """What the reader of gradients compares with, and the arrays that must live as long as it."""
        plan = self._plan
        self._grad_dtype = numpy_dtype(plan.grad_dtype)
        itemsize = self._grad_dtype.itemsize
        ndim = np.array([len(tensor.shape) for tensor in plan.tensors], np.int32)
        shapes = np.array([length for tensor in plan.tensors for length in tensor.shape], np.int64)
        nbytes = sizes * itemsize
        # The buffer protocol doesn't know bfloat16: where arrays can't be read directly, it goes as
        # 16-bit words.
        self._as_words = plan.grad_dtype == "bfloat16" and self._library.head == 0
        if plan.grad_dtype == "bfloat16":
            format_ = "H" if self._as_words else "\0"
        else:
            format_ = self._grad_dtype.char
        written = np.array([id(array) for array in plan.written], np.uintp)
        keeps = (ndim, shapes, nbytes, plan.owned.starts, plan.owned.ends)
        gather = Gather(
            len(plan.tensors),
            *(address_of(array) for array in keeps),
            len(plan.owned.starts),
            address_of(self._pointers) + self._pointers.itemsize,
            self._pointers.shape[1],
            itemsize,
            itemsize,
            id(self._grad_dtype),
            self._library.head,
            len(written),
            address_of(written),
            format_.encode(),
        )
        return gather, (*keeps, written)

    def bind(self, gradients: Sequence[object]) -> bool:
        """Read the gradients' addresses if each is just what the plan expects."""
        items: list[Any] = gradients if type(gradients) is list else list(gradients)
        if len(items) != len(self._plan.tensors):
            return False
        self._gradients = None
        if not (self._library.head or may_be_written(self._plan)):
            return False
        if self._as_words:
            if not all(type(g) in ARRAY_TYPES and g.dtype == self._grad_dtype for g in items):
                return False
            items = [g.view(np.uint16) for g in items]
        while True:
            stopped: int = self._library.gather(*self._gather_arguments, items)
            if stopped < 0:
                self._gradients = items if stopped == -1 else None
                return stopped == -1
            # A bfloat16 array whose dtype is another object of the same meaning, or a memmap: the
            # reader is given a view that it can read.
            gradient = items[stopped]
            if type(gradient) not in ARRAY_TYPES or gradient.dtype != self._grad_dtype or self._as_words:
                return False
            if type(gradient) is np.ndarray and gradient.dtype is self._grad_dtype:
                return False
            items = list(items)
            items[stopped] = gradient.view(np.ndarray).view(self._grad_dtype)

    def finite(self) -> bool:
        """Whether all bound gradients are finite."""
        self._check_bound()
        self._found[0] = 0
        function = self._library.finite[self._plan.grad_dtype]
        self._library.run(function, ctypes.addressof(self._finite_job), *self._sweep)
        return not self._found[0]

    def release(self) -> None:
        """Forget the gradients."""
        self._gradients = None

    def _work_of(self, units: HostArray) -> tuple[int, int, int]:
        """The pool's last three arguments: where units begin, how many there are, how many may help."""
        return address_of(units), len(units) - 1, min(self._helpers, len(units) - 2)

    def _check_table(self, table: HostArray, rows: HostArray) -> None:
        """The kernel indexes without any checks."""
        fits = (
            table.dtype == self._compute
            and table.ndim == 2
            and table.shape[1] == self._columns
            and table.flags.c_contiguous
            and rows.dtype == np.int32
            and rows.shape == (len(self._plan.tensors),)
            and rows.flags.c_contiguous
        )
        if not fits:
            raise CompilerBug(f"a table of {table.dtype}{table.shape} and rows of {rows.dtype}{rows.shape}")

    def _check_bound(self) -> None:
        if self._gradients is None:
            raise CompilerBug("a launch without bound gradients")


class CpuLauncher(CpuTensors):
    """A kernel with its tables."""

    def __init__(self, plan: LaunchPlan, kernel: ctypes.CDLL) -> None:
        super().__init__(plan)
        self._kernel = kernel  # keeps the code loaded
        self._job = Job(address_of(self._pointers), None, None, address_of(self._chunks))
        self._launch_arguments = (
            function_address(kernel.sg_kernel),
            ctypes.addressof(self._job),
            *self._sweep,
        )
        self._rows: HostArray | None = None
        self._table: HostArray | None = None

    def launch(self, table: HostArray, rows: HostArray) -> None:
        """Run the kernel over all tensors."""
        self._check_bound()
        if table is not self._table or rows is not self._rows:
            self._use(table, rows)
        self._library.run(*self._launch_arguments)

    def _use(self, table: HostArray, rows: HostArray) -> None:
        """Point the job at these arrays."""
        self._check_table(table, rows)
        self._table, self._rows = table, rows
        self._job.table, self._job.rows = address_of(table), address_of(rows)


def elements_before_line(array: HostArray) -> int:
    """How many elements lie before the first that begins a cache line."""
    return -address_of(array) % LINE // int(array.itemsize)


def unit_table(counts: HostArray, unit_size: int) -> HostArray:
    """Where units of work begin, in chunks, and the number of chunks as the last entry.

    A thread claims a unit at a time. Consecutive small chunks make one unit together.
    """
    costs = np.cumsum(counts.astype(np.int64) + TENSOR_COST)
    unit = (costs - 1) // (unit_size + TENSOR_COST)
    begins = np.flatnonzero(np.diff(unit, prepend=-1))
    return np.append(begins, len(counts)).astype(np.int64)
