"""The backend that interprets, instruction by instruction, the PTX that NVRTC emits for a GPU.

It is the CUDA backend over NumPy arrays: the same kernels, compiled by the same NVRTC, launched by the same
launcher with the same tables; only the device is a program. See docs/ptx.md.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from solvergen.errors import BackendUnavailable, OptimizerError
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import LaunchPlan, RowWork
from solvergen.runtime.buffers import (
    ARRAY_TYPES,
    HostArrays,
    KeptParameters,
    address_of,
    converted,
    may_be_written,
    state_dtype,
)
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import FINITE_TEXT, FLAG_TEXT, Kernels, shared_kernels
from solvergen.runtime.cuda.launch import Access, CudaLauncher
from solvergen.runtime.cuda.rows import DeviceRows
from solvergen.runtime.cuda.skipping import NAME as FLAG_NAME
from solvergen.runtime.cuda.skipping import CudaFlags, CudaSkip
from solvergen.runtime.cuda.staged import StagedCudaLauncher
from solvergen.runtime.cuda.starting import Bound, Lent, Region, Starter
from solvergen.runtime.cuda.tables import WORD, state_offset
from solvergen.runtime.cuda.workspace import CudaWorkspace
from solvergen.runtime.definition import Definition, Initial
from solvergen.runtime.kernel_interface import CHUNK
from solvergen.runtime.ptx.compiler import ptx_compiler
from solvergen.runtime.ptx.device import Argument, Expected, PtxDevice
from solvergen.runtime.ptx.machine.buffers import Buffer
from solvergen.runtime.ptx.machine.launch import LIMIT
from solvergen.runtime.ptx.observe import Observer
from solvergen.runtime.skipping import host_flag, plain_flag


class PtxBackend(HostArrays):
    """See ``Backend``. Arrays are NumPy's.

    ``capability``: the compute capability of the GPU that is played, 90 for 9.0. ``compiler``: the NVRTC to
    use; the one that is found by default. ``observe`` is called after every instruction, see ``Event``.
    ``limit``: instructions that a launch's threads may execute together before it counts as endless.

    Raises:
        BackendUnavailable: NVRTC is missing, or doesn't know the capability.
        OptimizerError: ``limit`` isn't a whole number above 0, or ``observe`` can't be called.
    """

    name = "ptx"
    table: Literal["kernel", "reference"] = "kernel"

    def __init__(
        self,
        capability: int = 90,
        compiler: nvrtc.Nvrtc | None = None,
        observe: Observer | None = None,
        limit: int = LIMIT,
    ) -> None:
        if type(limit) is not int or limit < 1:
            raise OptimizerError(f"limit is a number of instructions, 1 or more, not {limit!r:.60}")
        if observe is not None and not callable(observe):
            raise OptimizerError(f"observe is a function that is called with events, not {observe!r:.60}")
        try:
            found = compiler or nvrtc.load()
        except BackendUnavailable as missing:
            raise BackendUnavailable(f"backend 'ptx': {missing}") from None
        emitter = ptx_compiler(found)
        emitter.architecture_for(capability)
        self._device = PtxDevice(capability, observe=observe, limit=limit)
        self._kernels = shared_kernels(emitter)

    def allocate(self, param: HostArray, init: Initial, dtype: str | None = None) -> HostArray:
        """A state that begins where the CUDA backend would let it begin, relative to a word."""
        chosen = state_dtype(param, dtype)
        offset = state_offset(address_of(param), param.dtype.itemsize, chosen.itemsize)
        spare = np.empty(param.size * chosen.itemsize + 2 * WORD, np.uint8)
        begin = -address_of(spare) % WORD + offset
        nbytes = param.size * chosen.itemsize
        state: HostArray = spare[begin : begin + nbytes].view(chosen).reshape(param.shape)
        with np.errstate(all="ignore"):
            state[...] = converted(param, chosen) if init == "param" else init
        return state

    def flags(self, params: Sequence[HostArray]) -> PtxFlags:
        """Flags in host memory, asked by kernels."""
        return PtxFlags(self._device, self._kernels)

    def rows(self, param: HostArray) -> RowWork:
        """By the kernel that the CUDA backend has for it."""
        return DeviceRows(PtxStarter(self._device), self._kernels, np.empty, address_of)

    def workspace(  # type: ignore[override]
        self, definition: Definition, params: Sequence[HostArray], blocks: Sequence[int] | None = None
    ) -> CudaWorkspace:
        """A workspace in the device's memory."""
        shapes = [param.shape for param in params]
        return CudaWorkspace(definition, shapes, PtxStarter(self._device), self._kernels, blocks)

    def prepare(self, plan: LaunchPlan) -> PtxLauncher | PtxStagedLauncher:
        """Compile the kernels, or take them from the cache; decode them; build the tables.

        Raises:
            KernelBuildError: a kernel doesn't compile, or has an instruction that isn't known.
        """
        launcher = PtxStagedLauncher if plan.definition.is_staged else PtxLauncher
        return launcher(plan, self._device, self._kernels)


class PtxFlags(CudaFlags):
    """See ``Flags``."""

    def __init__(self, device: PtxDevice, kernels: Kernels) -> None:
        super().__init__(device, kernels)
        self._played = device

    def read(self, flag: object) -> bool | CudaSkip:
        """What it says, of a flag that is a number; else what kernels ask. Raises KernelFault."""
        plain = plain_flag(flag)
        if plain is not None:
            return plain
        array = host_flag(flag)
        answer = Argument(FLAG_NAME, 4, 4, writable=True)
        read = [_buffer("found_inf", array.view(np.ndarray), writable=False)]
        source = functools.partial(_read, FLAG_TEXT)
        with self._played.expecting(Expected(read, (None, None, None, answer), source)):
            return self.skip(address_of(array), array.dtype)


class PtxLauncher(CudaLauncher):
    """The CUDA backend's launcher, which tells the device beforehand what the launch may touch."""

    def __init__(self, plan: LaunchPlan, device: PtxDevice, kernels: Kernels) -> None:
        super().__init__(plan, lambda number: device, kernels, HOST_ACCESS)
        self._played = device
        self._plan = plan
        self._text = Path(plan.definition.folder) / "kernel.cu"
        self._arrays = _owned(plan)

    def bind(self, gradients: Sequence[object]) -> bool:
        """See ``Launcher``."""
        return may_be_written(self._plan) and super().bind(gradients)

    def launch(self, table: HostArray, rows: HostArray) -> None:
        """See ``Launcher``. Raises KernelFault."""
        arguments: tuple[Argument | None, ...] = (
            Argument("the table of pointers", self._pointers.nbytes, 8),
            Argument("the table of rows", rows.nbytes, rows.itemsize),
            Argument("the table of scalars", table.nbytes, table.itemsize),
            self._chunks(),
            None,
        )
        if self._skip is not None:
            region = self._skip.region
            arguments = (*arguments, Argument(region.name, region.nbytes, region.itemsize))
        arrays = [*self._arrays, *self._bound()]
        with self._played.expecting(Expected(arrays, arguments, functools.partial(_read, self._text))):
            super().launch(table, rows)

    def finite(self) -> bool:
        """See ``Launcher``. Raises KernelFault."""
        read = _gradients(self._plan, self._gradients, written=False)
        with self._played.expecting(_search(read, self.chunk_count)):
            return super().finite()

    def _bound(self) -> list[Buffer]:
        return _gradients(self._plan, self._gradients)

    def _chunks(self) -> Argument:
        return _chunk_table(self.chunk_count)


class PtxStarter(Starter):
    """Tells the device what each launch may touch."""

    def __init__(self, device: PtxDevice) -> None:
        super().__init__(device)
        self._played = device

    def start(
        self,
        kernel: Kernel,
        text: Path,
        blocks: int,
        arguments: Sequence[Region | Lent | np.generic],
        bound: Bound | None = None,
    ) -> None:
        """See ``Starter``. Raises KernelFault."""
        arrays = [*_owned(bound.plan), *_gradients(bound.plan, bound.gradients)] if bound else []
        arrays += [
            _buffer(given.region.name, given.array, writable=given.region.writable)
            for given in arguments
            if isinstance(given, Lent)
        ]
        described = [
            Argument(given.name, given.nbytes, given.itemsize, given.writable)
            if isinstance(given, Region)
            else None
            for given in arguments
        ]
        with self._played.expecting(Expected(arrays, described, functools.partial(_read, text))):
            super().start(kernel, text, blocks, arguments, bound)


class PtxStagedLauncher(StagedCudaLauncher):
    """The CUDA backend's launcher of staged rules."""

    def __init__(self, plan: LaunchPlan, device: PtxDevice, kernels: Kernels) -> None:
        super().__init__(plan, PtxStarter(device), kernels, HOST_ACCESS)
        self._played = device
        self._kept = KeptParameters(plan)

    def bind(self, gradients: Sequence[object]) -> bool:
        """See ``Launcher``."""
        return may_be_written(self.plan) and super().bind(gradients)

    def finite(self) -> bool:
        """See ``Launcher``. Raises KernelFault."""
        read = _gradients(self.plan, self._gradients, written=False)
        with self._played.expecting(_search(read, self.chunk_count)):
            return super().finite()

    def put_back(self) -> None:
        """See ``KernelLauncher``. Arrays are the host's."""
        self._kept.put_back()


def _owned(plan: LaunchPlan) -> list[Buffer]:
    """The parameters and states of a plan's tensors, and what kernels carry from pass to pass."""
    owned = []
    for tensor in plan.tensors:
        owned.append(_buffer(f"parameter {tensor.name!r}", tensor.param))
        for state, array in zip(plan.definition.array_states, tensor.states, strict=True):
            if array is not None:
                owned.append(_buffer(f"state {state} of {tensor.name!r}", array))
        for carried, array in zip(plan.definition.carried, tensor.carried, strict=True):
            owned.append(_buffer(f"{carried} of {tensor.name!r}", array))
    return owned


def _gradients(
    plan: LaunchPlan, gradients: Sequence[HostArray], *, written: bool | None = None
) -> list[Buffer]:
    if written is None and not (plan.reads_grad or plan.writes_grad):
        return []
    writable = plan.writes_grad if written is None else written
    return [
        _buffer(f"the gradient of {tensor.name!r}", gradient, writable=writable)
        for tensor, gradient in zip(plan.tensors, gradients, strict=True)
    ]


def _search(gradients: list[Buffer], chunk_count: int) -> Expected:
    """What the search for elements that aren't finite may touch."""
    arguments = (
        Argument("the table of pointers", 8 * len(gradients), 8),
        _chunk_table(chunk_count),
        None,
        Argument("the answer", 4, 4, writable=True),
    )
    return Expected(gradients, arguments, functools.partial(_read, FINITE_TEXT))


def _chunk_table(chunk_count: int) -> Argument:
    return Argument("the table of chunks", chunk_count * CHUNK.itemsize, CHUNK.itemsize)


def _buffer(name: str, array: HostArray, *, writable: bool = True) -> Buffer:
    if not array.flags.c_contiguous:  # its bytes would be a copy's, its address not
        raise ValueError(f"{name} is handed to a kernel and isn't contiguous")
    data = np.asarray(array).reshape(-1).view(np.uint8)
    return Buffer(name, address_of(array), data, writable, array.itemsize)


def _read(path: Path) -> str:
    """The CUDA text, as far as it can still be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def _host_view(array: object) -> Array | None:
    return np.asarray(array) if type(array) in ARRAY_TYPES else None


HOST_ACCESS = Access(
    type=np.ndarray,
    facts=lambda array: (array.dtype, array.shape, 0, array.strides),
    contiguous=lambda array: bool(array.flags.c_contiguous),
    address=address_of,
    view=_host_view,
)
"""How the launcher reads NumPy arrays: all are on device 0."""
