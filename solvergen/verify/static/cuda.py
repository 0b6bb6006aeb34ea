"""The kernels of an update for one compute capability: compiled, read, measured."""

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
from solvergen.runtime.cuda.kernels import LINE_STAGE, PASS, STAGE, UPDATE
from solvergen.runtime.cuda.nvrtc import Compiled, KernelResources, Nvrtc
from solvergen.runtime.cuda.tables import THREADS, lanes_of
from solvergen.runtime.definition import RANKS, Definition
from solvergen.runtime.dtypes import STORAGE_TYPES
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.ptx.text import parse
from solvergen.verify.mutations.conditions import active_lines
from solvergen.verify.static.arithmetic import arithmetic_findings, stage_findings
from solvergen.verify.static.buffers import accesses
from solvergen.verify.static.capabilities import Capability, Occupancy, occupancy
from solvergen.verify.static.findings import Finding, unreadable
from solvergen.verify.static.kept import kept
from solvergen.verify.static.memory import Traffic, memory_of, space_findings
from solvergen.verify.static.source import Source

_LINES = "-lineinfo"


@dataclass(frozen=True, slots=True)
class Measured:
    """What is known of a kernel without running it.

    ``kernel``: its name; ``sg_kernel`` is the whole of an elementwise update. ``spills``: bytes stored and
    loaded because registers didn't suffice. ``width``: bits of the narrowest access in the main loop.
    ``loads``, ``stores``: for each element, beside the least that the update needs (``loads_needed``,
    ``stores_needed``). ``nbytes``: moved for each parameter. ``in_flight``: bytes that a multiprocessor full
    of threads has under way, which is what hides the memory's latency. ``values``: of lines, that
    are read from tables for each element, at most. A stage has no loop over elements, so these are 0 but for
    registers, spills, stack and shared memory.
    """

    kernel: str
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
    values: float = 0.0

    def milliseconds(self, parameters: float, bandwidth: float) -> float:
        """The time that moving these bytes takes for so many parameters, at ``bandwidth`` in GB/s."""
        return self.nbytes * parameters / bandwidth / 1e6


def traffic_of(definition: Definition, options: Mapping[str, bool], param: str, grad: str) -> Traffic:
    """What an update with these options and types must move for each element."""
    compute = STORAGE_TYPES[STORAGE_TYPES[param].compute].itemsize
    itemsizes = {"param": STORAGE_TYPES[param].itemsize, "grad": STORAGE_TYPES[grad].itemsize}
    itemsizes |= dict.fromkeys((*definition.array_states, *definition.carried), compute)
    itemsizes |= {name: STORAGE_TYPES[dtype].itemsize for name, dtype in definition.copies.items()}
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
) -> tuple[Measured, ...]:
    """Compile the update and look at what came of it, kernel by kernel in the order of a step.

    Args:
        compiler: the compiler.
        definition: the optimizer.
        options: a value for each of its options.
        param: the parameter's storage type.
        grad: the gradient's.
        on: the compute capability.

    Raises:
        KernelBuildError: it doesn't compile, or a kernel is missing.
        VerificationError: the compiler doesn't know the capability.
    """
    if on.number not in compiler.capabilities:
        known = ", ".join(map(str, compiler.capabilities))
        raise VerificationError(f"{compiler} doesn't compile for {on}; it knows {known}")
    text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
    defines = update_defines(param, grad, options)
    compiled = _compiled(compiler, text, defines, str(on))
    traffic = replace(traffic_of(definition, options, param, grad), may_stay=_may_stay(definition, text))
    float64 = STORAGE_TYPES[param].compute == "float64"
    if not definition.is_staged:
        return (measure(compiled, text, traffic, on, float64=float64),)
    return examine_staged(compiled, text, definition, options, traffic, on, float64=float64, macros=defines)


def examine_staged(
    compiled: Compiled,
    text: str,
    definition: Definition,
    options: Mapping[str, bool],
    traffic: Traffic,
    on: Capability,
    *,
    float64: bool,
    macros: Mapping[str, int],
) -> tuple[Measured, ...]:
    """Look at the passes and stages of a compiled update; arguments as of ``examine`` and ``measure``.

    ``macros`` are those that it was compiled with. ``traffic`` is that of all passes together. Each pass is
    held to reading and writing once what it touches at all, and all of them to what the update needs.
    """
    passes, stages = definition.active_passes(**options), definition.active_stages(**options)
    reads, writes = definition.buffers_read(**options), definition.buffers_written(**options)
    names = tuple(traffic.itemsizes)
    found: list[Measured] = []
    for number in range(len(definition.passes) + 1):
        if number in stages and (not definition.has_lines or number in definition.stages):
            found.append(measure_stage(compiled, text, STAGE.format(number), on))
        for rank in RANKS:
            if number in stages and (number, rank) in definition.line_stages:
                found.append(measure_stage(compiled, text, LINE_STAGE.format(rank, number), on))
        if number not in passes or definition.passes[number].walk == "none":
            continue
        name = PASS.format(number)
        touched = _touched(compiled, name, names)
        (read, reads), (written, writes) = _taken(touched["ld"], reads), _taken(touched["st"], writes)
        one = definition.passes[number]
        tiles = one.walk == "tiles"
        own = replace(
            traffic,
            loads=Counter(read),
            stores=Counter(written),
            idle=tiles or bool(one.kinds),
            tiles=tiles,
            lines=definition.has_lines,
            values=values_read(text, number, macros, tiles=tiles) if definition.has_lines else {},
            # At the edges of a tile some threads have no element of a row.
            may_stay=frozenset(names) if tiles else traffic.may_stay,
        )
        found.append(measure(compiled, text, own, on, float64=float64, name=name))
    left = [f"{verb} {', '.join(rest)}" for verb, rest in (("read", reads), ("write", writes)) if rest]
    if left:
        message = f"no pass is left to {' and '.join(left)}, which the update needs"
        found[-1] = replace(found[-1], findings=(*found[-1].findings, Finding("traffic", message)))
    return tuple(found)


_TABLES = ("row", "column", "matrix")
_FIRST_TABLE = {True: 8, False: 9}
"""The parameter that takes the values of rows, of a pass over tiles or over chunks; those of columns and of
matrices follow."""
_VALUE = re.compile(r"\bsg_lines\.sg_(row|column|matrix)\[")


def values_read(text: str, number: int, macros: Mapping[str, int], *, tiles: bool) -> dict[int, int]:
    """The values of lines that a pass's equations read for each element under these options, by the number
    of the parameter that is their table."""
    active = active_lines(text, macros)
    found = dict.fromkeys(_TABLES, 0)
    inside = False
    for place, line in enumerate(text.split("\n"), start=1):
        inside = (inside and line != "}") or line.startswith(f"SG_FUNCTION void sg_update_{number}(")
        if inside and place in active:
            for table in _VALUE.findall(line):
                found[table] += 1
    return {_FIRST_TABLE[tiles] + offset: found[table] for offset, table in enumerate(_TABLES)}


def _touched(compiled: Compiled, name: str, buffers: tuple[str, ...]) -> dict[str, list[str]]:
    """The buffers that a kernel loads and stores, in the order of the table of pointers."""
    try:
        kernel = parse(compiled.ptx).kernels[name]
    except (PtxError, KeyError):  # whoever measures it says so
        return {"ld": [], "st": []}
    found = {(a.kind, a.buffer) for a in accesses(kernel, len(buffers))}
    return {kind: [b for i, b in enumerate(buffers) if (kind, i) in found] for kind in ("ld", "st")}


def _taken(touched: list[str], needed: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a pass must do to buffers, and what is left for later ones.

    ``needed`` is pass by pass, and a pass's in the order of the table: so a pass's part is what it touches
    of the beginning. What it touches besides is too much.
    """
    part: list[str] = []
    for name in touched:
        if needed[len(part) : len(part) + 1] == (name,):
            part.append(name)
    return tuple(part), needed[len(part) :]


def measure(
    compiled: Compiled, text: str, traffic: Traffic, on: Capability, *, float64: bool, name: str = UPDATE
) -> Measured:
    """Look at a compiled pass over the elements.

    Args:
        compiled: machine code with its PTX, the latter with line numbers.
        text: its CUDA text.
        traffic: what it must move.
        on: what it was compiled for.
        float64: whether elements are computed in float64.
        name: the kernel's.

    Raises:
        KernelBuildError: there is no such kernel in it.
    """
    kernel = _kernel(compiled, name)
    findings = list(_resources(kernel))
    width, loads, stores, values = 0, 0.0, 0.0, 0.0
    source = Source(text)
    try:
        parsed = parse(compiled.ptx).kernels[name]
    except PtxError as problem:
        findings.append(unreadable(problem))
    else:
        memory = memory_of(parsed, source, traffic)
        findings += [*arithmetic_findings(parsed, source, float64=float64), *memory.findings]
        width, loads, stores, values = memory.width, memory.loads, memory.stores, memory.values
    resident = occupancy(on, threads=THREADS, registers=kernel.registers, shared=kernel.shared)
    lanes = lanes_of([traffic.itemsizes["param"], traffic.itemsizes["grad"]])
    return Measured(
        kernel=name,
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
        values=values,
    )


def measure_stage(compiled: Compiled, text: str, name: str, on: Capability) -> Measured:
    """Look at a compiled stage. Arguments as of ``measure``.

    Raises:
        KernelBuildError: there is no such kernel in it.
    """
    kernel = _kernel(compiled, name)
    findings = list(_resources(kernel))
    source = Source(text)
    try:
        parsed = parse(compiled.ptx).kernels[name]
    except PtxError as problem:
        findings.append(unreadable(problem))
    else:
        findings += [*stage_findings(parsed, source), *space_findings(parsed, source)]
    return Measured(
        kernel=name,
        registers=kernel.registers,
        spills=kernel.spill_stores + kernel.spill_loads,
        stack=kernel.stack,
        shared=kernel.shared,
        width=0,
        loads=0.0,
        loads_needed=0,
        stores=0.0,
        stores_needed=0,
        occupancy=occupancy(on, threads=THREADS, registers=kernel.registers, shared=kernel.shared),
        nbytes=0,
        in_flight=0,
        findings=tuple(findings),
    )


def _kernel(compiled: Compiled, name: str) -> KernelResources:
    kernel = next((k for k in compiled.resources if k.name == name), None)
    if kernel is None:
        raise KernelBuildError(f"there is no kernel {name} in it", log=compiled.log)
    return kernel


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
