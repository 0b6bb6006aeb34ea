"""NVRTC as the interpreter wants it: PTX with the lines that it comes from."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from solvergen.errors import BackendUnavailable
from solvergen.runtime.cuda.nvrtc import FLAGS, Compiled, Nvrtc

_LINES = "-lineinfo"


class PtxCompiler:
    """A ``Compiler`` (see ``runtime/cuda/nvrtc.py``) that emits PTX for any compute capability it knows."""

    flags: tuple[str, ...] = (*FLAGS, _LINES)

    def __init__(self, nvrtc: Nvrtc) -> None:
        self._nvrtc = nvrtc
        self.version = nvrtc.version

    def architecture_for(self, capability: int) -> str:
        """``compute_90`` for 90. Raises BackendUnavailable if NVRTC doesn't know the capability."""
        known = self._nvrtc.capabilities
        if capability not in known:
            raise BackendUnavailable(
                f"backend 'ptx': {self._nvrtc} doesn't compile for compute capability {capability}; it knows "
                f"{', '.join(map(str, known))}"
            )
        return f"compute_{capability}"

    def compile(self, text: str, architecture: str, defines: Mapping[str, int] | None = None) -> Compiled:
        """Compile to PTX. Raises KernelBuildError."""
        return self._nvrtc.compile(text, architecture, defines, extra_flags=(_LINES,))


@functools.cache
def ptx_compiler(nvrtc: Nvrtc) -> PtxCompiler:
    """The one of an NVRTC, so that its kernels are decoded once a process."""
    return PtxCompiler(nvrtc)
