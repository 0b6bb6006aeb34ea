"""What the CUDA backend asks of a GPU, and the one class that asks the driver for it, through CuPy.

Everything else in the backend is arithmetic on addresses and shapes and works, and is tested, without a
driver. This file is what needs one, so it is short.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from solvergen.errors import BackendUnavailable, KernelBuildError
from solvergen.runtime.arrays import HostArray
from solvergen.runtime.cuda.nvrtc import INSTALL_EXTRA

Kernel = Any
"""A loaded kernel, as the device that loaded it knows it."""


class Event(Protocol):
    """A point in a stream's work."""

    def record(self) -> None:
        """The point is after everything that the current stream has been given so far."""
        ...

    def wait(self) -> None:
        """Return when that work is done. At once if nothing was recorded."""
        ...


class Device(Protocol):
    """One GPU. Work goes to the current stream of the calling thread, and nothing waits unless it says so."""

    number: int
    capability: int
    """Compute capability, 90 for 9.0."""

    def load(self, image: bytes, name: str) -> Kernel:
        """The kernel ``name`` of a cubin or of PTX. Raises KernelBuildError if the driver refuses it."""
        ...

    def allocate(self, nbytes: int) -> Any:
        """Device memory, aligned to 256 bytes: a ``cupy.cuda.MemoryPointer``, which owns it."""
        ...

    def staging(self, nbytes: int) -> HostArray:
        """Page-locked host memory, as bytes, from which ``upload`` copies without waiting. It may be given
        back only when all uploads from it are done."""
        ...

    def event(self) -> Event:
        """An event with nothing recorded."""
        ...

    def upload(self, address: int, source: HostArray) -> None:
        """Copy contiguous host memory to the device. ``source`` must stay as it is until that is done."""
        ...

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy from device memory to device memory."""
        ...

    def download(self, target: HostArray, address: int) -> None:
        """Fill contiguous host memory from the device. Waits for the current stream and for the copy."""
        ...

    def fetch(self, target: HostArray, address: int) -> None:
        """Fill memory that ``staging`` gave from the device. Waits for nothing: an event that is recorded
        next tells when it is done."""
        ...

    def synchronize(self) -> None:
        """Wait for the current stream."""
        ...

    def launch(self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[np.generic]) -> None:
        """Run ``kernel`` with a one-dimensional grid. Arguments are NumPy scalars of the kernel's types."""
        ...


@functools.cache
def unavailable() -> str | None:
    """None if CuPy is there and sees a GPU, else what is wrong and what to install. Asked once a process."""
    try:
        import cupy
    except ImportError as problem:
        return f"CuPy can't be imported ({problem}); {INSTALL_EXTRA}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as problem:
        return f"CuPy {cupy.__version__} is installed but finds no usable GPU ({problem})"
    return None if count else f"CuPy {cupy.__version__} is installed but there is no GPU"


@functools.cache
def device(number: int) -> Device:
    """The GPU ``number``, one object a process.

    Raises:
        BackendUnavailable: CuPy or a GPU is missing.
    """
    problem = unavailable()
    if problem is not None:
        raise BackendUnavailable(f"backend 'cuda': {problem}")
    return CupyDevice(number)


def toolkit_major() -> int:
    """The major version of CUDA that CuPy was built for, so one whose cubins the driver loads."""
    import cupy

    version: int = cupy.cuda.runtime.runtimeGetVersion()
    return version // 1000


class CupyDevice:
    """A GPU through CuPy: each method is one or two calls.

    Nothing here makes CuPy compile a kernel of its own, for which it would need a CUDA toolkit's headers.
    """

    def __init__(self, number: int) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._device = cupy.cuda.Device(number)
        self.number = number
        self.capability = int(self._device.compute_capability)

    def load(self, image: bytes, name: str) -> Kernel:
        """See ``Device``. CuPy's kernels hold the module that they belong to."""
        try:
            with self._device:
                module = self._cuda.function.Module()
                module.load(image + b"\0")  # PTX must end in NUL; machine code knows its own length
                return module.get_function(name)
        except self._cuda.driver.CUDADriverError as problem:
            raise KernelBuildError(
                f"GPU {self.number} can't load the kernel: {problem}. Its driver may be older than the NVRTC "
                "that compiled it: update the driver, or install the extra [cuda12] instead of [cuda13]"
            ) from problem

    def allocate(self, nbytes: int) -> Any:
        """See ``Device``."""
        with self._device:
            return self._cuda.alloc(nbytes)

    def staging(self, nbytes: int) -> HostArray:
        """See ``Device``. The array holds the memory."""
        return np.frombuffer(self._cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)

    def event(self) -> Event:
        """See ``Device``."""
        return CupyEvent(self._device)

    def upload(self, address: int, source: HostArray) -> None:
        """See ``Device``."""
        with self._device:
            stream = self._cuda.get_current_stream().ptr
            self._cuda.runtime.memcpyAsync(
                address, source.ctypes.data, source.nbytes, self._cuda.runtime.memcpyHostToDevice, stream
            )

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """See ``Device``."""
        with self._device:
            stream = self._cuda.get_current_stream().ptr
            self._cuda.runtime.memcpyAsync(
                address, source, nbytes, self._cuda.runtime.memcpyDeviceToDevice, stream
            )

    def download(self, target: HostArray, address: int) -> None:
        """See ``Device``."""
        with self._device:
            stream = self._cuda.get_current_stream()
            self._cuda.runtime.memcpyAsync(
                target.ctypes.data, address, target.nbytes, self._cuda.runtime.memcpyDeviceToHost, stream.ptr
            )
            stream.synchronize()

    def fetch(self, target: HostArray, address: int) -> None:
        """See ``Device``."""
        with self._device:
            stream = self._cuda.get_current_stream().ptr
            self._cuda.runtime.memcpyAsync(
                target.ctypes.data, address, target.nbytes, self._cuda.runtime.memcpyDeviceToHost, stream
            )

    def synchronize(self) -> None:
        """See ``Device``."""
        with self._device:
            self._cuda.get_current_stream().synchronize()

    def launch(self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[np.generic]) -> None:
        """See ``Device``."""
        with self._device:
            kernel((blocks,), (threads,), tuple(arguments))


class CupyEvent:
    """An event on one device."""

    def __init__(self, device: Any) -> None:
        import cupy

        self._cuda = cupy.cuda
        self._device = device
        with device:
            self._event = cupy.cuda.Event(block=True, disable_timing=True)

    def record(self) -> None:
        """See ``Event``."""
        with self._device:
            self._event.record(self._cuda.get_current_stream())

    def wait(self) -> None:
        """See ``Event``."""
        self._event.synchronize()
