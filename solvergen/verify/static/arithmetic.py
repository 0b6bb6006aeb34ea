"""Whether a kernel's PTX computes what is written: IEEE operations, each rounded once, to nearest.

PTX leaves it to the assembler to contract ``mul.f32`` and ``add.f32`` into one operation unless they say how
they round; ``.rn`` keeps them apart (PTX ISA, "Floating Point Instructions").
"""

from __future__ import annotations

from collections.abc import Iterator

from solvergen.runtime.ptx.module import Instruction, Kernel
from solvergen.verify.static.findings import Finding, about
from solvergen.verify.static.source import Source

_ROUNDED = ("add", "sub", "mul", "div", "rcp", "sqrt")
_DIRECTIONS = ("rz", "rm", "rp")
_MOVES = ("mov", "ld", "st", "selp")
"""They compute nothing."""
_MOVABLE = ("cvt", "setp")
"""Where their arguments are the same for all elements, compilers put them under lines of something else."""


def arithmetic_findings(kernel: Kernel, source: Source, *, float64: bool) -> tuple[Finding, ...]:
    """Every instruction whose result isn't that of the operation in the text.

    Args:
        kernel: the PTX.
        source: its CUDA text, for where an instruction comes from.
        float64: whether the elements are of float64, so that it may be anywhere.
    """
    found: list[Finding] = []
    for instruction in kernel.instructions:
        found += (about(check, message, instruction, source) for check, message in _wrong(instruction))
        if (
            not float64
            and "f64" in instruction.modifiers
            and instruction.opcode not in _MOVES
            and not source.has_float64(instruction.place, movable=instruction.opcode in _MOVABLE)
        ):
            message = "computes in float64 where the language computes in float32"
            found.append(about("float64", message, instruction, source))
    return tuple(found)


def stage_findings(kernel: Kernel, source: Source) -> tuple[Finding, ...]:
    """The same of a stage: all that it computes is a scalar, so float64."""
    found = list(arithmetic_findings(kernel, source, float64=True))
    message = "computes in float32 where the language computes in float64"
    found += (
        about("float32", message, instruction, source)
        for instruction in kernel.instructions
        if {"f32", "f32x2"} & set(instruction.modifiers)
    )
    return tuple(found)


def _wrong(instruction: Instruction) -> Iterator[tuple[str, str]]:
    modifiers = instruction.modifiers
    name = instruction.name
    floating = bool(modifiers) and modifiers[-1] in ("f32", "f64", "f32x2")
    half = bool(modifiers) and modifiers[-1] in ("f16", "f16x2", "bf16", "bf16x2")
    if "approx" in modifiers or "full" in modifiers:
        yield "approximation", f"{name} has no defined value"
    if "ftz" in modifiers:
        yield "flush to zero", f"{name} loses subnormal numbers"
    if instruction.opcode == "fma" or (instruction.opcode == "mad" and (floating or half)):
        yield "contraction", f"{name} rounds a product and a sum once instead of twice"
    elif instruction.opcode in _ROUNDED and half:
        yield "narrow arithmetic", f"{name} computes in 16 bits; the language computes in float32"
    elif (
        instruction.opcode in _ROUNDED and floating and "approx" not in modifiers and "full" not in modifiers
    ):
        if any(direction in modifiers for direction in _DIRECTIONS):
            yield "rounding", f"{name} doesn't round to nearest"
        elif "rn" not in modifiers:
            yield "contraction", f"{name} doesn't say how it rounds, so the assembler may contract it"
    if instruction.opcode == "call":
        yield "library call", f"{name} calls a function that isn't the language's own"
