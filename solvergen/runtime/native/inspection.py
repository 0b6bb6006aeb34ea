"""What the compiler made of a kernel: are its loops vectorised, are products and sums fused?

Looks at the compiler's own assembly text (x86-64 and aarch64). For tests and for people who tune kernels;
nothing here runs when an optimizer does.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from solvergen.errors import NativeBuildError
from solvergen.runtime.cache_folder import open_cache
from solvergen.runtime.native.compiler import find_compiler
from solvergen.runtime.native.running import in_scratch, run_compiler

_ARITHMETIC = r"(?:add|sub|mul|div|sqrt)"
_PACKED = re.compile(rf"^(?:v?{_ARITHMETIC}p[sd]\s|f{_ARITHMETIC}\s+v\d+\.\d)")
_SCALAR = re.compile(rf"^(?:v?{_ARITHMETIC}s[sd]\s|f{_ARITHMETIC}\s+[sd]\d)")
_FUSED = re.compile(r"^(?:vfn?m(?:add|sub)|fml[as]\s|fn?m(?:add|sub)\s)")
_LABEL = re.compile(r"^([.\w$]+):")
_JUMP = re.compile(r"^(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s+(?:[^,]+,\s*)*([.\w$]+)$")


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions of floating-point arithmetic, on vectors and on one number."""

    packed: int
    scalar: int


def assembly(text: str, definitions: tuple[str, ...] = ()) -> str:
    """The assembly text of a C file, under the options with which kernels are compiled.

    Raises:
        BackendUnavailable: there is no C compiler.
        NativeBuildError: it refuses the text.
    """
    compiler, cache = find_compiler(), open_cache("native")

    def work(folder: Path) -> str:
        source, output = folder / "kernel.c", folder / "kernel.s"
        source.write_text(text, encoding="utf-8")
        macros = [f"-D{macro}" for macro in definitions]
        command = [*compiler.command, *compiler.options, *macros, "-S", str(source), "-o", str(output)]
        result = run_compiler(command, folder, cache)
        if result.returncode != 0:
            message = "the C compiler refuses a kernel"
            raise NativeBuildError(message, log=result.stderr, command=shlex.join(command), kept=str(folder))
        return output.read_text(encoding="utf-8")

    return in_scratch(cache, work)


def loops(text: str, function: str = "sg_run") -> tuple[Loop, ...]:
    """The innermost loops of a function in an assembly text that do floating-point arithmetic."""
    lines = _lines_of(text, function)
    labels = {match[1]: i for i, line in enumerate(lines) if (match := _LABEL.match(line))}
    spans = []
    for i, line in enumerate(lines):
        jump = _JUMP.match(line)
        if jump and labels.get(jump[1], i) < i:
            spans.append((labels[jump[1]], i))
    innermost = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    found = [
        Loop(
            packed=sum(1 for line in lines[start:end] if _PACKED.match(line)),
            scalar=sum(1 for line in lines[start:end] if _SCALAR.match(line)),
        )
        for start, end in innermost
    ]
    return tuple(loop for loop in found if loop.packed or loop.scalar)


def fused_operations(text: str) -> list[str]:
    """The instructions of an assembly text that round a product and a sum once instead of twice."""
    return [line for line in map(_clean, text.splitlines()) if _FUSED.match(line)]


def _lines_of(text: str, function: str) -> list[str]:
    lines = [_clean(line) for line in text.splitlines()]
    starts = [i for i, line in enumerate(lines) if re.match(rf"^_?{re.escape(function)}(?:\.\w+)*:", line)]
    if not starts:
        return []
    for end in range(starts[0] + 1, len(lines)):
        # The next function begins; local labels begin with a dot or an L.
        if lines[end].startswith((".size", ".cfi_endproc")):
            return lines[starts[0] : end]
    return lines[starts[0] :]


def _clean(line: str) -> str:
    return line.split("#")[0].split("//")[0].strip()
