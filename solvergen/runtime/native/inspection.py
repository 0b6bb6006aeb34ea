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
_FLOATING = re.compile(rf"{_PACKED.pattern}|{_SCALAR.pattern}")
_FUSED = re.compile(r"^(?:vfn?m(?:add|sub)|fml[as]\s|fn?m(?:add|sub)\s)")
_CALL = re.compile(r"^(?:callq?|bl|blr)\s")
_LOC = re.compile(r"^\.loc\s+\d+\s+(\d+)")
_LABEL = re.compile(r"^([.\w$]+):")
_RUN = re.compile(r"^_?(sg_run(?:_\d+)?(?:_by_\d+)?)(?:\.\w+)*:")
_JUMP = re.compile(r"^(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s+(?:[^,]+,\s*)*([.\w$]+)$")


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its instructions of floating-point arithmetic, on vectors and on one number.

    ``source``: the line of C of the first of them; 0 where the assembly doesn't say.
    """

    packed: int
    scalar: int
    source: int = 0


@dataclass(frozen=True)
class Place:
    """An instruction: its line in the assembly text, from 1, and the line of C that it comes from or 0."""

    line: int
    text: str
    source: int


def assembly(text: str, definitions: tuple[str, ...] = (), *, lines: bool = False) -> str:
    """The assembly text of a C file, under the options with which kernels are compiled.

    ``lines``: also say which line of C the instructions come from.

    Raises:
        BackendUnavailable: there is no C compiler.
        NativeBuildError: it refuses the text.
    """
    compiler, cache = find_compiler(), open_cache("native")

    def work(folder: Path) -> str:
        source, output = folder / "kernel.c", folder / "kernel.s"
        source.write_text(text, encoding="utf-8")
        macros = [f"-D{macro}" for macro in definitions]
        macros += ["-g1"] if lines else []
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
    sources: list[int] = []
    for line in lines:
        located = _LOC.match(line)
        sources.append(int(located[1]) if located else sources[-1] if sources else 0)
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
            source=next((sources[i] for i in range(start, end) if _FLOATING.match(lines[i])), 0),
        )
        for start, end in innermost
    ]
    return tuple(loop for loop in found if loop.packed or loop.scalar)


def runs(text: str) -> tuple[str, ...]:
    """Names of the functions that hold a kernel's loops over elements: ``sg_run``, or ``sg_run_0`` and so on
    where there are several passes; ``sg_run_0_by_4`` of four rows at a time."""
    found = (_RUN.match(_clean(line)) for line in text.splitlines())
    return tuple(dict.fromkeys(match[1] for match in found if match))


def fused_operations(text: str) -> list[str]:
    """The instructions of an assembly text that round a product and a sum once instead of twice."""
    return [operation.text for operation in fused(text)]


def fused(text: str) -> tuple[Place, ...]:
    """The instructions of ``fused_operations``, with where they stand and where they come from."""
    return _matching(text, _FUSED)


def calls(text: str, function: str = "sg_run") -> tuple[Place, ...]:
    """The calls of other functions within a function."""
    body = set(_span_of(text, function))
    return tuple(place for place in _matching(text, _CALL) if place.line - 1 in body)


def _matching(text: str, pattern: re.Pattern[str]) -> tuple[Place, ...]:
    found, source = [], 0
    for number, line in enumerate(map(_clean, text.splitlines()), start=1):
        located = _LOC.match(line)
        if located:
            source = int(located[1])
        elif pattern.match(line):
            found.append(Place(number, " ".join(line.split()), source))
    return tuple(found)


def _lines_of(text: str, function: str) -> list[str]:
    lines = text.splitlines()
    return [_clean(lines[i]) for i in _span_of(text, function)]


def _span_of(text: str, function: str) -> range:
    """The lines of a function, counted from 0."""
    lines = [_clean(line) for line in text.splitlines()]
    starts = [i for i, line in enumerate(lines) if re.match(rf"^_?{re.escape(function)}(?:\.\w+)*:", line)]
    if not starts:
        return range(0)
    for end in range(starts[0] + 1, len(lines)):
        # The next function begins; local labels begin with a dot or an L.
        if lines[end].startswith((".size", ".cfi_endproc")):
            return range(starts[0], end)
    return range(starts[0], len(lines))


def _clean(line: str) -> str:
    return line.split("#")[0].split("//")[0].strip()
