"""One update kernel for one compute capability: compiled, read, measured."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from solvergen.errors import KernelBuildError, PtxError, VerificationError
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.cuda.cache import build, key_of
from solvergen.runtime.cuda.kernels import UPDATE
from solvergen.runtime.cuda.nvrtc import Compiled, KernelResources, Nvrtc
from solvergen.runtime.cuda.tables import THREADS, lanes_of
from solvergen.runtime.definition import Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.ptx.text import parse
from solvergen.verify.static.arithmetic import arithmetic_findings
from solvergen.verify.static.capabilities import Capability, Occupancy, occupancy
from solvergen.verify.static.findings import Finding, unreadable
from solvergen.verify.static.kept import kept
from solvergen.verify.static.memory import Traffic, memory_of
from solvergen.verify.static.source import Source

_LINES = "-lineinfo"


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a kernel without running it.

    ``spills``: bytes stored and loaded because registers didn't suffice. ``width``: bits of the narrowest
    access in the main loop. ``loads``, ``stores``: for each element, beside the least that the update needs
    (``loads_needed``, ``stores_needed``). ``nbytes``: moved for each parameter. ``in_flight``: bytes that a
    multiprocessor full of threads has under way, which is what hides the memory's latency.
    """

    registers: int
    spills: int
    stack: int
    shared: int
    width: int
    loads: float
    loads_needed: int
    stores: float
    stores_needed: int
    occupancy: Occupancy
    nbytes: int
    in_flight: int
    findings: tuple[Finding, ...]

    def milliseconds(self, parameters: float, bandwidth: float) -> float:
        """The time that moving these bytes takes for so many parameters, at ``bandwidth`` in GB/s."""
        return self.nbytes * parameters / bandwidth / 1e6


def traffic_of(definition: Definition, options: Mapping[str, bool], param: str, grad: str) -> Traffic:
    """What an update with these options and types must move for each element."""
    compute = STORAGE_TYPES[STORAGE_TYPES[param].compute].itemsize
    itemsizes = {"param": STORAGE_TYPES[param].itemsize, "grad": STORAGE_TYPES[grad].itemsize}
    itemsizes |= dict.fromkeys((*definition.array_states, *definition.carried), compute)
    return Traffic(
        itemsizes,
        Counter(definition.buffers_read(**options)),
        Counter(definition.buffers_written(**options)),
    )


def _may_stay(definition: Definition, text: str) -> frozenset[str]:
    """Buffers that the CUDA text selects as they were loaded, under some condition (adopt's first update)."""
    buffers = ("param", *definition.array_states, *definition.carried)
    return frozenset(name for name in buffers if re.search(rf"\? {name} :|: {name}[;)]", text))


def examine(
    compiler: Nvrtc,
    definition: Definition,
    options: Mapping[str, bool],
    param: str,
    grad: str,
    on: Capability,
) -> Measured:
    """Compile the update and look at what came of it.

    Args:
        compiler: the compiler.
        definition: the optimizer.
        options: a value for each of its options.
        param: the parameter's storage type.
        grad: the gradient's.
        on: the compute capability.

    Raises:
        KernelBuildError: it doesn't compile.
        VerificationError: the compiler doesn't know the capability.
    """
    if on.number not in compiler.capabilities:
        known = ", ".join(map(str, compiler.capabilities))
        raise VerificationError(f"{compiler} doesn't compile for {on}; it knows {known}")
    text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
    defines = update_defines(param, grad, options)
    compiled = _compiled(compiler, text, defines, str(on))
    traffic = replace(traffic_of(definition, options, param, grad), may_stay=_may_stay(definition, text))
    return measure(compiled, text, traffic, on, float64=STORAGE_TYPES[param].compute == "float64")


def measure(compiled: Compiled, text: str, traffic: Traffic, on: Capability, *, float64: bool) -> Measured:
    """Look at a compiled update.

    Args:
        compiled: machine code with its PTX, the latter with line numbers.
        text: its CUDA text.
        traffic: what it must move.
        on: what it was compiled for.
        float64: whether elements are computed in float64.

    Raises:
        KernelBuildError: there is no update in it.
    """
    kernel = next((k for k in compiled.resources if k.name == UPDATE), None)
    if kernel is None:
        raise KernelBuildError(f"there is no kernel {UPDATE} in it", log=compiled.log)
    findings = list(_resources(kernel))
    width, loads, stores = 0, 0.0, 0.0
    source = Source(text)
    try:
        parsed = parse(compiled.ptx).kernels[UPDATE]
    except PtxError as problem:
        findings.append(unreadable(problem))
    else:
        memory = memory_of(parsed, source, traffic)
        findings += [*arithmetic_findings(parsed, source, float64=float64), *memory.findings]
        width, loads, stores = memory.width, memory.loads, memory.stores
    resident = occupancy(on, threads=THREADS, registers=kernel.registers, shared=kernel.shared)
    lanes = lanes_of([traffic.itemsizes["param"], traffic.itemsizes["grad"]])
    return Measured(
        registers=kernel.registers,
        spills=kernel.spill_stores + kernel.spill_loads,
        stack=kernel.stack,
        shared=kernel.shared,
        width=width,
        loads=loads,
        loads_needed=sum(traffic.loads.values()),
        stores=stores,
        stores_needed=sum(traffic.stores.values()),
        occupancy=resident,
        nbytes=traffic.nbytes,
        in_flight=resident.threads * lanes * traffic.loaded,
        findings=tuple(findings),
    )


def _resources(kernel: KernelResources) -> list[Finding]:
    found = []
    if kernel.spill_stores or kernel.spill_loads:
        moved = f"{kernel.spill_stores} bytes stored and {kernel.spill_loads} loaded"
        found.append(Finding("spill", f"{kernel.registers} registers don't suffice: {moved}"))
    elif kernel.stack:
        found.append(Finding("local memory", f"a stack of {kernel.stack} bytes for each thread"))
    return found


class _WithLines:
    """A compiler that notes which line each instruction comes from."""

    def __init__(self, compiler: Nvrtc) -> None:
        self._compiler = compiler
        self.version = compiler.version
        self.flags: tuple[str, ...] = (*nvrtc.FLAGS, _LINES)

    def architecture_for(self, capability: int) -> str:
        return self._compiler.architecture_for(capability)

    def compile(self, text: str, architecture: str, defines: Mapping[str, int] | None = None) -> Compiled:
        return self._compiler.compile(text, architecture, defines, extra_flags=(_LINES,))


def _compiled(compiler: Nvrtc, text: str, defines: Mapping[str, int], architecture: str) -> Compiled:
    """As the runtime compiles it: the PTX and the assembler's report, which is what is looked at."""

    with_lines = _WithLines(compiler)

    def make() -> str:
        made = build(with_lines, text, defines, architecture)
        resources = [asdict(entry) for entry in made.resources]
        return json.dumps({"ptx": made.ptx, "log": made.log, "resources": resources})

    key = key_of(text, defines, architecture, with_lines.version, with_lines.flags)
    found = json.loads(kept(["cuda", key], make))
    resources = tuple(KernelResources(**entry) for entry in found["resources"])
    return Compiled(b"", "cubin", architecture, found["log"], found["ptx"], resources)
