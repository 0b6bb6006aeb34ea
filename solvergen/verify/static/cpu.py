"""One native kernel: are the loops of its passes vectorised, do they keep products and sums apart, does each
pass read and write what it must and nothing twice?"""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from solvergen.errors import BackendUnavailable
from solvergen.runtime.definition import Definition
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.native.compiler import find_compiler
from solvergen.runtime.native.inspection import Loop, assembly, calls, fused, loops, runs
from solvergen.runtime.native.processor import processor
from solvergen.verify.mutations.conditions import active_lines
from solvergen.verify.static.findings import Finding
from solvergen.verify.static.kept import kept
from solvergen.verify.static.source import Source

_COPIES = re.compile(r"\bmem(?:cpy|move)\b")
"""What compilers make of a loop that copies, as rules do that evaluate gradients in a step."""

_READABLE = ("x86_64", "AMD64", "aarch64", "arm64")


@dataclass(frozen=True, slots=True)
class NativeMeasured:
    """What is known of a native kernel without running it.

    ``packed``: floating-point instructions on whole vectors in its main loop. ``fused``: operations that
    round a product and a sum once. ``loads`` and ``stores``: of buffers, for each element, over all passes,
    as the text has them under these options; compilers keep what they have loaded through ``restrict``.
    """

    packed: int
    fused: int
    findings: tuple[Finding, ...]
    loads: int = 0
    stores: int = 0
    loads_needed: int = 0
    stores_needed: int = 0


def why_not() -> str | None:
    """Why native kernels can't be looked at here; None if they can."""
    if platform.machine() not in _READABLE:
        return f"the assembly of {platform.machine()} can't be read; that of x86-64 and aarch64 can"
    try:
        find_compiler()
    except BackendUnavailable as reason:
        return str(reason)
    return None


def examine_native(
    definition: Definition, options: Mapping[str, bool], param: str, grad: str
) -> NativeMeasured:
    """Compile the update as the CPU backend does, and look at the compiler's assembly.

    Args:
        definition: the optimizer.
        options: a value for each of its options.
        param: the parameter's storage type.
        grad: the gradient's.

    Raises:
        BackendUnavailable: there is no C compiler.
        NativeBuildError: it refuses the kernel.
    """
    text = Path(definition.folder, "kernel.c").read_text(encoding="utf-8")
    macros = update_defines(param, grad, options)
    defines = tuple(f"{name}={value}" for name, value in macros.items())
    compiler = find_compiler()
    about = ["cpu", text, defines, compiler.identity, compiler.options, processor()]
    measured = measure_native(kept(about, lambda: assembly(text, defines, lines=True)), text)
    needed = Counter(definition.buffers_read(**options)), Counter(definition.buffers_written(**options))
    moved = traffic_in(text, macros)
    findings = list(measured.findings)
    for (places, word), least in zip(((moved[0], "read"), (moved[1], "written")), needed, strict=True):
        for buffer in dict.fromkeys((*least, *places)):
            found = places.get(buffer, [])
            if len(found) > least[buffer]:
                message = f"{buffer} is {word} {len(found)} times where {least[buffer]} would do"
                where = Source(text, "kernel.c").line(found[-1])
                findings.append(Finding("traffic", message, source=where))
            elif len(found) < least[buffer]:
                message = f"{buffer} is {word} {len(found)} times, and {least[buffer]} passes have to"
                findings.append(Finding("traffic", message))
    loads, stores = (sum(map(len, places.values())) for places in moved)
    return replace(
        measured,
        findings=tuple(findings),
        loads=loads,
        stores=stores,
        loads_needed=needed[0].total(),
        stores_needed=needed[1].total(),
    )


_FUNCTION = re.compile(r"^(?:static __attribute__.*\bsg_run(?:_\d+)?|SG_INLINE void sg_element_\d+)\(")
_ACCESS = re.compile(r"\bsg_\w+_(load|store)\(sg_(\w+)_at\b")


def traffic_in(text: str, macros: Mapping[str, int]) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """The lines of a kernel that read each buffer in the loops over elements, and those that write it."""
    active = active_lines(text, macros)
    found: dict[str, dict[str, list[int]]] = {"load": {}, "store": {}}
    inside = False
    for number, line in enumerate(text.split("\n"), start=1):
        inside = (inside and line != "}") or _FUNCTION.match(line) is not None
        if inside and number in active:
            for kind, buffer in _ACCESS.findall(line.partition("//")[0]):
                found[kind].setdefault(buffer, []).append(number)
    return found["load"], found["store"]


def measure_native(listing: str, text: str) -> NativeMeasured:
    """Look at a compiled kernel: its assembly with line numbers, and its C text."""
    source = Source(text, "kernel.c")
    functions = runs(listing)
    # A pass that has nothing to do under these options has no loop; but then another has.
    of_each = [found for found in (loops(listing, function) for function in functions) if found] or [()]
    main: list[Loop] = []
    findings = []
    for found in of_each:
        vectorised = [loop for loop in found if loop.packed and not loop.scalar]
        main += vectorised
        if vectorised:
            continue
        best = max(found, key=lambda loop: loop.packed + loop.scalar, default=None)
        message = "the main loop works on one element at a time"
        if best is None:
            findings.append(Finding("not vectorised", f"{message}, or there is none"))
        else:
            detail = f"{message}: {best.scalar} instructions on one number, {best.packed} on vectors"
            findings.append(Finding("not vectorised", detail, source=source.line(best.source)))
    contracted = fused(listing)
    for operation in contracted:
        message = "rounds a product and a sum once instead of twice"
        where = source.line(operation.source)
        findings.append(Finding("contraction", message, operation.line, operation.text, where))
    for call in (call for function in functions for call in calls(listing, function)):
        if _COPIES.search(call.text):
            continue
        message = "the loop calls a function that isn't the language's own"
        findings.append(Finding("library call", message, call.line, call.text, source.line(call.source)))
    packed = max((loop.packed for loop in main), default=0)
    return NativeMeasured(packed, len(contracted), tuple(findings))
