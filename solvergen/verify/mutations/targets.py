"""What mutants run on: a backend, the text that it compiles, and what that is compiled to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from solvergen.runtime.backends.base import Backend
from solvergen.runtime.definition import Definition
from solvergen.verify.mutations.flags import FlagFault
from solvergen.verify.mutations.tables import TableFault

INSTRUCTIONS = 100_000
"""What threads may execute on ptx before they are held to never end: many times what a right kernel needs."""


@dataclass(frozen=True)
class Target:
    """``file``: the text of an optimizer's folder that ``backend`` compiles. ``image``: what a text is
    compiled to under macros, the same bytes for the same code; raises what the backend would raise.
    ``flags`` and ``tables``: the faults of what it is compiled with, and of what the runtime hands over;
    ``staged_tables``: that of staged rules, ``line_tables``: what rules with lines have besides."""

    name: str
    file: str
    backend: Callable[[], Backend]
    image: Callable[[str, Mapping[str, int]], bytes]
    flags: tuple[FlagFault, ...] = ()
    tables: tuple[TableFault, ...] = ()
    staged_tables: tuple[TableFault, ...] = ()
    line_tables: tuple[TableFault, ...] = ()

    def tables_of(self, definition: Definition) -> tuple[TableFault, ...]:
        """The faults of tables of a rule."""
        faults = self.staged_tables if definition.is_staged else self.tables
        if definition.has_lines:
            faults = (*faults, *self.line_tables)
        return tuple(fault for fault in faults if fault.concerns(definition))


def cpu() -> Target:
    """The native backend. Raises BackendUnavailable where there is no C compiler."""
    from solvergen.runtime.backends.cpu import CpuBackend
    from solvergen.runtime.native.build import load
    from solvergen.verify.mutations.flags import NATIVE
    from solvergen.verify.mutations.steps import OF_STEPS
    from solvergen.verify.mutations.tables import CHUNKS_ON_CPU, LINES_ON_CPU, ON_CPU

    def image(text: str, defines: Mapping[str, int]) -> bytes:
        # The very library that the backend loads afterwards: compiled once, and kept by it.
        library = load({"kernel.c": text}, [f"{name}={value}" for name, value in defines.items()])
        return Path(library._name).read_bytes()

    CpuBackend()
    staged = (*CHUNKS_ON_CPU, *OF_STEPS)
    return Target("cpu", "kernel.c", CpuBackend, image, NATIVE, ON_CPU, staged, LINES_ON_CPU)


def ptx(capability: int = 90) -> Target:
    """The PTX that NVRTC emits, interpreted. Raises BackendUnavailable where there is no NVRTC."""
    from solvergen.runtime.backends.ptx import PtxBackend
    from solvergen.runtime.cuda import nvrtc
    from solvergen.verify.mutations.flags import PTX
    from solvergen.verify.mutations.steps import OF_STEPS
    from solvergen.verify.mutations.tables import CHUNKS_ON_CUDA, LINES_ON_CUDA, ON_CUDA

    compiler = nvrtc.load()

    def image(text: str, defines: Mapping[str, int]) -> bytes:
        # Without line numbers, which are other ones where a line is longer.
        return compiler.compile(text, f"compute_{capability}", defines).image

    PtxBackend(capability)

    def backend() -> Backend:
        return PtxBackend(capability, limit=INSTRUCTIONS)

    staged = (*CHUNKS_ON_CUDA, *OF_STEPS)
    return Target("ptx", "kernel.cu", backend, image, PTX, ON_CUDA, staged, LINES_ON_CUDA)
