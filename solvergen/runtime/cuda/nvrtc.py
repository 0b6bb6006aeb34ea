"""NVRTC through ctypes: CUDA text to PTX or to machine code, with the floating point that we choose.

CuPy compiles too, but appends ``-ftz=true`` to whatever flags it is given, and then subnormals are lost.
No driver and no GPU are needed here. NVRTC comes as a wheel of its own (the extras ``cuda12`` and
``cuda13``) or with a CUDA toolkit.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from solvergen.errors import BackendUnavailable, KernelBuildError

LIBRARY_VARIABLE = "SOLVERGEN_NVRTC"
"""Environment variable: path of the NVRTC library to use instead of the one that is found."""

MAJORS = (13, 12)
"""Major versions of CUDA whose NVRTC is known to work, the preferred one first."""

FLAGS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "-diag-suppress",  # 177: a helper function that this kernel doesn't call
    "177",
)
"""What every kernel is compiled with, besides architecture and macros: IEEE arithmetic as written."""

INSTALL_EXTRA = (
    "install solvergen's extra for your CUDA version (pip install 'solvergen[cuda12]' or 'solvergen[cuda13]')"
)

INSTALL_HINT = (
    f"{INSTALL_EXTRA}, or set CUDA_PATH to a CUDA toolkit, or {LIBRARY_VARIABLE} to the library itself"
)


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What ptxas says of one kernel: registers a thread, and bytes of local and shared memory."""

    name: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int


@dataclass(frozen=True, slots=True)
class Compiled:
    """Compiled kernels.

    ``kind`` says what ``image`` is: ``cubin``, machine code for ``architecture`` (``sm_90``), with
    ``resources`` for each kernel; or ``ptx``, text for ``architecture`` (``compute_90``) or newer,
    without resources. ``ptx`` is the PTX in both cases, ``log`` what the compiler printed.
    """

    image: bytes
    kind: Literal["cubin", "ptx"]
    architecture: str
    log: str
    ptx: str
    resources: tuple[KernelResources, ...]


class Compiler(Protocol):
    """What turns CUDA text into something that a device can load."""

    version: tuple[int, int]
    flags: tuple[str, ...]
    """What every text is compiled with, besides architecture and macros."""

    def architecture_for(self, capability: int) -> str:
        """What to compile for, given a compute capability, 90 for 9.0."""
        ...

    def compile(self, text: str, architecture: str, defines: Mapping[str, int] | None = None) -> Compiled:
        """Compile. Raises KernelBuildError."""
        ...


class Nvrtc:
    """One NVRTC library. Several threads may compile at once.

    Raises:
        OSError: the file is missing or isn't a library that loads here.
        AttributeError: it isn't NVRTC.
    """

    flags: tuple[str, ...] = FLAGS

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def __str__(self) -> str:
        return f"NVRTC {self.version[0]}.{self.version[1]} ({self.path})"

    @functools.cached_property
    def capabilities(self) -> tuple[int, ...]:
        """The compute capabilities that this version compiles for, ascending, 90 for 9.0."""
        count = ctypes.c_int()
        self._call("nvrtcGetNumSupportedArchs", ctypes.byref(count))
        values = (ctypes.c_int * count.value)()
        self._call("nvrtcGetSupportedArchs", values)
        return tuple(sorted(values))

    def architecture_for(self, capability: int) -> str:
        """What to compile for, given the device's compute capability (90 for 9.0).

        Machine code where this version knows the device. For a newer device PTX of the newest
        capability that is known, which the driver translates.

        Raises:
            BackendUnavailable: the device is too old.
        """
        if capability in self.capabilities:
            return f"sm_{capability}"
        known = [c for c in self.capabilities if c < capability]
        if not known:
            raise BackendUnavailable(
                f"the GPU has compute capability {capability / 10}, {self} starts at "
                f"{self.capabilities[0] / 10}"
            )
        return f"compute_{known[-1]}"

    def compile(
        self,
        text: str,
        architecture: str,
        defines: Mapping[str, int] | None = None,
        *,
        name: str = "kernel.cu",
        extra_flags: Sequence[str] = (),
    ) -> Compiled:
        """Compile ``text`` for ``sm_NN`` (machine code) or ``compute_NN`` (PTX).

        ``defines`` are macros, ``name`` is what messages call the file.

        Raises:
            KernelBuildError: the compiler refused; with its log and the numbered text.
        """
        machine_code = architecture.startswith("sm_")
        flags = [f"--gpu-architecture={architecture}", *FLAGS]
        flags += [f"-D{macro}={value}" for macro, value in (defines or {}).items()]
        flags += ["--ptxas-options=-v"] if machine_code else []
        flags += extra_flags
        program = ctypes.c_void_p()
        new = (ctypes.byref(program), text.encode(), name.encode(), ctypes.c_int(0), None, None)
        self._call("nvrtcCreateProgram", *new)
        try:
            encoded = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
            status = self._library.nvrtcCompileProgram(program, ctypes.c_int(len(flags)), encoded)
            log = self._output(program, "nvrtcGetProgramLog").decode(errors="replace")
            if status != 0:
                raise KernelBuildError(
                    f"{self} can't compile {name} for {architecture}: {self._explain(status)} "
                    f"(flags: {' '.join(flags)})",
                    log=log,
                    source=numbered(text),
                )
            ptx = self._output(program, "nvrtcGetPTX")
            if machine_code:
                image = self._output(program, "nvrtcGetCUBIN", text=False)
                return Compiled(image, "cubin", architecture, log, ptx.decode(), resources_in(log))
            return Compiled(ptx, "ptx", architecture, log, ptx.decode(), ())
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _output(self, program: ctypes.c_void_p, getter: str, *, text: bool = True) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"{getter}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(max(1, size.value))
        self._call(getter, program, buffer)
        data = buffer.raw[: size.value]
        return data.rstrip(b"\0") if text else data  # texts end in a NUL that belongs to C, not to them

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise KernelBuildError(f"{self.path}: {function} failed: {self._explain(status)}")

    def _explain(self, status: int) -> str:
        message: bytes = self._library.nvrtcGetErrorString(ctypes.c_int(status))
        return message.decode()


def numbered(text: str) -> str:
    """``text`` with a number before each line, as compilers count them."""
    return "\n".join(f"{number:4} | {line}" for number, line in enumerate(text.splitlines(), start=1))


def resources_in(log: str) -> tuple[KernelResources, ...]:
    """The resources of each kernel in a log written under ``--ptxas-options=-v``."""
    found = []
    for part in re.split(r"(?=Compiling entry function)", log)[1:]:
        entry = re.match(r"Compiling entry function '([^']+)'", part)
        registers = re.search(r"Used (\d+) registers", part)
        frame = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", part)
        if entry is None or registers is None or frame is None:
            raise KernelBuildError("ptxas' report has a form that solvergen doesn't know", log=log)
        stack, stores, loads = (int(number) for number in frame.groups())
        smem = re.search(r"(\d+) bytes smem", part)
        shared = int(smem.group(1)) if smem else 0
        found.append(KernelResources(entry.group(1), int(registers.group(1)), stack, stores, loads, shared))
    return tuple(found)


def load(major: int | None = None) -> Nvrtc:
    """The NVRTC to use: of CUDA ``major`` if there is one, else the first that is found.

    Looked for, in this order: ``$SOLVERGEN_NVRTC``, NVIDIA's wheels, ``$CUDA_PATH`` and ``$CUDA_HOME``,
    and where the system's loader looks.

    Raises:
        BackendUnavailable: there is none; says what to install.
    """
    problems = []
    candidates = list(_candidates())
    # A driver doesn't load machine code of a newer CUDA, so the wanted version goes first.
    wanted = f".so.{major}"
    candidates.sort(key=lambda path: major is not None and wanted not in os.path.basename(path))
    chosen = os.environ.get(LIBRARY_VARIABLE)
    for path in [chosen] if chosen else candidates:
        try:
            return _opened(path)
        except (OSError, AttributeError) as problem:
            problems.append(f"{path}: {problem}")
    details = "".join(f"\n  {problem}" for problem in problems)
    raise BackendUnavailable(f"the CUDA compiler NVRTC was not found; {INSTALL_HINT}{details}")


def installed() -> tuple[Nvrtc, ...]:
    """Every NVRTC that is found, one a version, in the order in which ``load`` prefers them."""
    found: dict[tuple[int, int], Nvrtc] = {}
    for path in _candidates():
        try:
            nvrtc = _opened(path)
        except (OSError, AttributeError):
            continue
        found.setdefault(nvrtc.version, nvrtc)
    return tuple(found.values())


@functools.cache
def _opened(path: str) -> Nvrtc:
    return Nvrtc(path)


def _candidates() -> Iterator[str]:
    """Paths and names that may be an NVRTC."""
    chosen = os.environ.get(LIBRARY_VARIABLE)
    if chosen:
        yield chosen
    names = ["libnvrtc.dylib"] if sys.platform == "darwin" else [f"libnvrtc.so.{major}" for major in MAJORS]
    folders = []
    for root in _wheel_roots():
        folders += [root / f"cu{major}" / "lib" for major in MAJORS] + [root / "cuda_nvrtc" / "lib"]
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        if os.environ.get(variable):
            folders += [Path(os.environ[variable]) / "lib64", Path(os.environ[variable]) / "lib"]
    for folder in folders:
        for name in names:
            if (folder / name).is_file():
                yield str(folder / name)
    found = ctypes.util.find_library("nvrtc")
    yield from ([found] if found else [])


def _wheel_roots() -> list[Path]:
    """The folders called ``nvidia`` that NVIDIA's wheels share; nothing is imported."""
    spec = importlib.util.find_spec("nvidia")
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []
