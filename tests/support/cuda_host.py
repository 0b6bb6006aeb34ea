"""Runs the CUDA kernels' text on the host, compiled by g++ behind a small header: a GPU's stand-in.

The text is the very one that NVRTC compiles, and the runtime around it is the CUDA backend's own:
compiler and device are exchanged, nothing else. It shows that loads, stores, chunks, heads, tails and
conversions are right; it can't show what NVRTC makes of the text.

Device memory is mapped between pages that can't be touched, an access beyond a buffer's pages ends the
process; misaligned vector accesses do the same, through UBSan.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import mmap
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from solvergen.errors import KernelBuildError
from solvergen.runtime.arrays import Array, HostArray
from solvergen.runtime.backends.base import LaunchPlan
from solvergen.runtime.buffers import ARRAY_TYPES, HostArrays, address_of, converted, state_dtype
from solvergen.runtime.cuda.device import Kernel
from solvergen.runtime.cuda.kernels import Kernels
from solvergen.runtime.cuda.launch import Access, CudaLauncher
from solvergen.runtime.cuda.nvrtc import Compiled, numbered
from solvergen.runtime.cuda.tables import WORD, state_offset
from solvergen.runtime.definition import Initial

SHIM = Path(__file__).with_name("cuda_host_shim.h")

FLAGS = (
    "-std=c++17",
    "-O1",
    "-shared",
    "-fPIC",
    "-ffp-contract=off",
    "-fno-strict-aliasing",  # vectors are loaded through casts, as CUDA allows
    "-fsanitize=alignment",
    "-fno-sanitize-recover=alignment",
    "-static-libubsan",
    "-w",
)

_ENTRY = """
extern "C" unsigned long long sg_host_launch(unsigned blocks, unsigned threads,
                                             const unsigned long long *words) {
    return sg_host_grid(SG_ENTRY, blocks, threads, words);
}
"""


def missing() -> str | None:
    """None if kernels can be run here, else the reason."""
    return None if shutil.which("g++") else "there is no g++"


class HostCompiler:
    """g++ in NVRTC's place. The "cubin" is a shared library."""

    flags = FLAGS

    def __init__(self) -> None:
        text = SHIM.read_bytes() + " ".join(FLAGS).encode() + _ENTRY.encode()
        # Stands in for the compiler's version in the cache's key.
        self.version = (0, int.from_bytes(hashlib.sha256(text).digest()[:7], "big"))

    def architecture_for(self, capability: int) -> str:
        return "sm_host"

    def compile(self, text: str, architecture: str, defines: Mapping[str, int] | None = None) -> Compiled:
        entry = next(
            (name for name in ("sg_finite", "sg_rows", "sg_flag") if f"{name}(" in text), "sg_kernel"
        )
        flags = [
            *FLAGS,
            f"-DSG_ENTRY={entry}",
            *(f"-D{name}={value}" for name, value in (defines or {}).items()),
        ]
        with tempfile.TemporaryDirectory() as folder:
            source, library = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
            source.write_text(f'#include "{SHIM}"\n#line 1 "kernel.cu"\n{text}{_ENTRY}', encoding="utf-8")
            run = subprocess.run(
                ["g++", *flags, str(source), "-o", str(library)], capture_output=True, text=True
            )
            if run.returncode:
                raise KernelBuildError("g++ can't compile kernel.cu", log=run.stderr, source=numbered(text))
            return Compiled(library.read_bytes(), "cubin", architecture, run.stderr, "", ())


class GuardedMemory:
    """Memory between pages that can't be touched, ending (or beginning) at one of them.

    ``ptr`` is where it begins, ``slack`` bytes may lie between its end and the guard, since it begins at
    a multiple of ``alignment`` plus ``offset``; ``slack_intact`` tells whether they are untouched.
    """

    def __init__(
        self, nbytes: int, *, alignment: int = 256, offset: int = 0, at: Literal["end", "start"] = "end"
    ) -> None:
        page = mmap.PAGESIZE
        body = -(-(nbytes + alignment + offset) // page) * page
        self._map = mmap.mmap(-1, body + 2 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._bytes = np.frombuffer(self._map, np.uint8)
        base = self._bytes.ctypes.data
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for guard in (base, base + page + body):
            if protect(ctypes.c_void_p(guard), ctypes.c_size_t(page), 0):
                raise OSError(ctypes.get_errno(), "mprotect")
        first = page + offset
        if at == "end":
            first = (page + body - nbytes - offset) // alignment * alignment + offset
        self._used = slice(first, first + nbytes)
        self.ptr = base + first
        self.bytes: HostArray = self._bytes[self._used]
        self._slack = [self._bytes[page:first], self._bytes[first + nbytes : page + body]]
        for part in self._slack:
            part[...] = 0xA5
        self.bytes[...] = 0xFF  # NaNs: what is read before it is written shows

    def slack_intact(self) -> bool:
        return all((part == 0xA5).all() for part in self._slack)


class HostEvent:
    """All work is done when a call returns."""

    def record(self) -> None:
        return

    def wait(self) -> None:
        return


class HostDevice:
    """A ``Device`` whose memory is the host's. ``words`` counts the 128-bit stores of all launches."""

    capability = 90

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.words = 0

    def load(self, image: bytes, name: str) -> Kernel:
        with tempfile.NamedTemporaryFile(suffix=".so", delete=False) as file:
            file.write(image)
        try:
            function = ctypes.CDLL(file.name).sg_host_launch
        finally:
            os.unlink(file.name)
        function.argtypes = [ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p]
        function.restype = ctypes.c_ulonglong
        return function

    def allocate(self, nbytes: int) -> Any:
        return GuardedMemory(nbytes)

    def staging(self, nbytes: int) -> HostArray:
        return np.zeros(nbytes, np.uint8)

    def event(self) -> HostEvent:
        return HostEvent()

    def upload(self, address: int, source: HostArray) -> None:
        ctypes.memmove(address, source.ctypes.data, source.nbytes)

    def copy(self, address: int, source: int, nbytes: int) -> None:
        ctypes.memmove(address, source, nbytes)

    def download(self, target: HostArray, address: int) -> None:
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def fetch(self, target: HostArray, address: int) -> None:
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def synchronize(self) -> None:
        return

    def launch(self, kernel: Kernel, blocks: int, threads: int, arguments: Sequence[np.generic]) -> None:
        words = np.array([int(argument) for argument in arguments], np.uint64)
        self.words += kernel(blocks, threads, words.ctypes.data)


@functools.cache
def host_device(number: int) -> HostDevice:
    return HostDevice(number)


@functools.cache
def host_kernels() -> Kernels:
    return Kernels(HostCompiler())


def _host_view(array: object) -> Array | None:
    return np.asarray(array) if type(array) in ARRAY_TYPES else None


HOST_ACCESS = Access(
    type=np.ndarray,
    facts=lambda array: (array.dtype, array.shape, 0, array.strides),
    contiguous=lambda array: bool(array.flags.c_contiguous),
    address=address_of,
    view=_host_view,
)


class HostCudaBackend(HostArrays):
    """The CUDA backend over NumPy arrays, its kernels run by the host. Everything else is the real one."""

    name = "cuda"
    table: Literal["kernel", "reference"] = "kernel"

    def allocate(self, param: HostArray, init: Initial, dtype: str | None = None) -> HostArray:
        """A state that begins where the real backend lets it begin, between guards."""
        chosen = state_dtype(param, dtype)
        offset = state_offset(address_of(param), param.dtype.itemsize, chosen.itemsize)
        memory = GuardedMemory(param.size * chosen.itemsize, alignment=WORD, offset=offset)
        state = memory.bytes.view(chosen).reshape(param.shape)
        with np.errstate(all="ignore"):
            state[...] = converted(param, chosen) if init == "param" else init
        return state

    def prepare(self, plan: LaunchPlan) -> CudaLauncher:
        return CudaLauncher(plan, host_device, host_kernels(), HOST_ACCESS)
