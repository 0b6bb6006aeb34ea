"""One native kernel: is its main loop vectorised, does it keep products and sums apart?"""

from __future__ import annotations

import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from solvergen.errors import BackendUnavailable
from solvergen.runtime.definition import Definition
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.native.compiler import find_compiler
from solvergen.runtime.native.inspection import Loop, assembly, calls, fused, loops, runs
from solvergen.runtime.native.processor import processor
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
    round a product and a sum once.
    """

    packed: int
    fused: int
    findings: tuple[Finding, ...]


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
    defines = tuple(f"{name}={value}" for name, value in update_defines(param, grad, options).items())
    compiler = find_compiler()
    about = ["cpu", text, defines, compiler.identity, compiler.options, processor()]
    return measure_native(kept(about, lambda: assembly(text, defines, lines=True)), text)


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
