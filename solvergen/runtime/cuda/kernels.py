"""From a definition's CUDA text to kernels loaded on a device, each once a process."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from pathlib import Path

from solvergen.errors import KernelBuildError
from solvergen.runtime.cuda.cache import compiled, key_of
from solvergen.runtime.cuda.device import Device, Kernel
from solvergen.runtime.cuda.nvrtc import Compiler
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.kernel_interface import update_defines

UPDATE = "sg_kernel"
FINITE = "sg_finite"
FLAG = "sg_flag"
REDUCE = "sg_reduce"
ROWS = "sg_rows"
PASS = "sg_pass_{}"
STAGE = "sg_stage_{}"
LINE_STAGE = "sg_{}_stage_{}"

KEPT = 256
"""Kernels that are kept loaded although nobody may be using them; the least recently used are dropped.
Launchers hold theirs."""

FINITE_TEXT = Path(__file__).with_name("finite.cu")
"""The text of the kernel ``FINITE``."""

FLAG_TEXT = Path(__file__).with_name("flag.cu")
"""The text of the kernel ``FLAG``."""

REDUCE_TEXT = Path(__file__).with_name("reduce.cu")
"""The text of the kernel ``REDUCE``."""

ROWS_TEXT = Path(__file__).with_name("rows.cu")
"""The text of the kernel ``ROWS``."""


class Kernels:
    """Compiles for, and loads on, any number of devices. Threads may share it."""

    def __init__(self, compiler: Compiler) -> None:
        self._compiler = compiler
        self._loaded: dict[tuple[int, str, str], Kernel] = {}  # most recently used last
        self._lock = threading.Lock()

    def update(
        self,
        device: Device,
        folder: str,
        param_dtype: str,
        grad_dtype: str,
        options: Mapping[str, bool],
        name: str = UPDATE,
        *,
        skips: bool = False,
    ) -> Kernel:
        """The update of the generated package in ``folder``, for these storage types and options.

        ``name``: which of the kernels in its text; a staged rule has several (``PASS``, ``STAGE``).
        ``skips``: the one that is given, as its last argument, the address of an int32, and does nothing if
        that isn't 0.

        Raises:
            KernelBuildError: its ``kernel.cu`` is missing, doesn't compile, or the driver refuses it.
        """
        defines = update_defines(param_dtype, grad_dtype, options)
        if skips:
            defines["SG_SKIP"] = 1
        return self._kernel(device, Path(folder) / "kernel.cu", defines, name)

    def finite(self, device: Device, grad_dtype: str) -> Kernel:
        """The kernel that looks for elements that aren't finite."""
        return self._kernel(device, FINITE_TEXT, {"SG_GRAD": STORAGE_TYPES[grad_dtype].code}, FINITE)

    def flag(self, device: Device) -> Kernel:
        """The kernel that looks whether a flag is set."""
        return self._kernel(device, FLAG_TEXT, {}, FLAG)

    def reduce(self, device: Device) -> Kernel:
        """The kernel that reduces terms to totals."""
        return self._kernel(device, REDUCE_TEXT, {}, REDUCE)

    def rows(self, device: Device, work: int, itemsize: int, code: int) -> Kernel:
        """The kernel that takes rows out of tensors (``work`` 0), puts them back (1) or adds them up (2): of
        elements of so many bytes, of the storage type with this code."""
        defines = {"SG_WORK": work, "SG_SIZE": itemsize} | ({"SG_ROWS": code} if work == 2 else {})
        return self._kernel(device, ROWS_TEXT, defines, ROWS)

    def _kernel(self, device: Device, path: Path, defines: Mapping[str, int], name: str) -> Kernel:
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as problem:
            raise KernelBuildError(f"the kernel can't be read: {problem}; build the specs again") from None
        architecture = self._compiler.architecture_for(device.capability)
        digest = key_of(text, defines, architecture, self._compiler.version, self._compiler.flags)
        key = device.number, digest, name
        with self._lock:
            kernel = self._loaded.pop(key, None)
            if kernel is None:
                kernel = device.load(compiled(self._compiler, text, defines, architecture), name)
                if len(self._loaded) >= KEPT:
                    del self._loaded[next(iter(self._loaded))]
            self._loaded[key] = kernel
            return kernel


@functools.cache
def shared_kernels(compiler: Compiler) -> Kernels:
    """The kernels that all optimizers share: each is loaded once on a GPU."""
    return Kernels(compiler)
