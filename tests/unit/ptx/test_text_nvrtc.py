"""The PTX that NVRTC emits is read without loss: printed again, each instruction is the line that it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import generated
from solvergen.errors import PtxError
from solvergen.runtime.cuda import nvrtc
from solvergen.runtime.kernel_interface import update_defines
from solvergen.runtime.ptx.module import (
    Address,
    Float,
    Instruction,
    Integer,
    Kernel,
    Not,
    Operand,
    Pair,
    Register,
    Special,
    Symbol,
    Vector,
)
from solvergen.runtime.ptx.text import parse

COMPILERS = nvrtc.installed()
CAPABILITIES = (75, 80, 90, 100, 120)
CUDA = Path(__file__).with_name("everything.cu")

pytestmark = pytest.mark.skipif(not COMPILERS, reason="NVRTC isn't installed")

compilers = pytest.mark.parametrize(
    "compiler", COMPILERS, ids=lambda found: f"{found.version[0]}.{found.version[1]}"
)
with_lines = pytest.mark.parametrize("flags", [(), ("-lineinfo",)], ids=["plain", "lineinfo"])

_HEX = re.compile(r"\b0x[0-9A-F]+U?")
_LINE = re.compile(r"\s*((?:@!?%p\d+\s+)?[a-z][\w.:]*(?:\s[^;]*)?;)\s*(?://.*)?")


def printed(operand: Operand) -> str:
    match operand:
        case Register() | Special() | Symbol():
            return operand.name
        case Integer():
            return str(operand.value)
        case Float():
            return f"0{'f' if operand.width == 32 else 'd'}{operand.bits:0{operand.width // 4}X}"
        case Not():
            return f"!{operand.register.name}"
        case Vector():
            return "{" + ", ".join(map(printed, operand.elements)) + "}"
        case Pair():
            return f"{printed(operand.first)}|{printed(operand.second)}"
        case Address(None, offset):
            return f"[{offset}]"
        case Address(base, 0):
            return f"[{base.name}]"
        case Address(base, offset):
            return f"[{base.name}+{offset}]"
        case _:
            return "_"


def line_of(instruction: Instruction) -> str:
    guard = instruction.guard
    before = f"@{'!' if guard.negated else ''}{guard.register.name} " if guard else ""
    return f"{before}{instruction.name} {', '.join(map(printed, instruction.operands))}".strip() + ";"


def check(ptx: str) -> dict[str, Kernel]:
    """Read a text; every line with an instruction, in order, is what the instruction prints as."""
    module = parse(ptx)
    read = [i for kernel in module.kernels.values() for i in kernel.instructions]
    lines = ptx.split("\n")
    written = [
        (number, _HEX.sub(lambda found: str(int(found[0].rstrip("U"), 16)), match[1]))
        for number, line in enumerate(lines, start=1)
        if (match := _LINE.fullmatch(line))
    ]
    assert [(i.place.line, "".join(line_of(i).split())) for i in read if one_on_its_line(lines, i)] == [
        (number, "".join(text.split())) for number, text in written
    ]
    for kernel in module.kernels.values():
        assert [r.slot for r in kernel.registers] == list(range(len(kernel.registers)))
        assert len({r.name for r in kernel.registers if r.name.startswith("%")}) == len(
            [r for r in kernel.registers if r.name.startswith("%")]
        )
        assert all(0 <= at <= len(kernel.instructions) for at in kernel.labels.values())
        branches = [i for i in kernel.instructions if i.opcode == "bra"]
        assert {b.operands[0].name for b in branches if isinstance(b.operands[0], Symbol)} <= {*kernel.labels}
    return dict(module.kernels)


def one_on_its_line(lines: list[str], instruction: Instruction) -> bool:
    """Not inline assembly that has several on a line."""
    return _LINE.fullmatch(lines[instruction.place.line - 1]) is not None


@compilers
@with_lines
@pytest.mark.parametrize("name", generated.__all__)
def test_every_optimizer(compiler: nvrtc.Nvrtc, flags: tuple[str, ...], name: str) -> None:
    definition = getattr(generated, name).definition
    text = Path(definition.folder, "kernel.cu").read_text(encoding="utf-8")
    mixes = [("float32", "float32"), ("bfloat16", "float32"), ("float64", "float64"), ("float16", "float16")]
    for turn, capability in enumerate(CAPABILITIES):
        param, grad = mixes[turn % len(mixes)]
        options = dict.fromkeys(definition.option_names, turn % 2 == 0)
        defines = update_defines(param, grad, options)
        compiled = compiler.compile(text, f"compute_{capability}", defines, extra_flags=flags)
        kernels = check(compiled.ptx)
        passes = [k for name, k in kernels.items() if name == "sg_kernel" or name.startswith("sg_pass_")]
        walks = [definition.passes[number].walk for number in definition.active_passes(**options)]
        active = definition.active_stages(**options)
        stages = [number for number in definition.stages if number in active]
        stages += [number for number, _ in definition.line_stages if number in active]
        assert len(passes) == len([walk for walk in walks if walk != "none"])
        assert len(kernels) == len(passes) + len(stages)
        for kernel in kernels.values():
            assert kernel.max_threads == (256, 1, 1)
        sources = set()
        # Of rules with lines passes have their tables too, those over tiles two for partial totals.
        widths = {14, 12} if definition.has_lines else {8} if definition.is_staged else {5}
        for kernel in passes:
            assert {p.nbytes for p in kernel.parameters} == {8}
            assert len(kernel.parameters) in widths
            sources |= {i.place.source for i in kernel.instructions}
        assert len(sources) > 10 if flags else sources == {0}


@compilers
@with_lines
@pytest.mark.parametrize("capability", CAPABILITIES)
def test_everything_else_that_cuda_has(
    compiler: nvrtc.Nvrtc, flags: tuple[str, ...], capability: int
) -> None:
    text = CUDA.read_text(encoding="utf-8")
    kernels = check(compiler.compile(text, f"compute_{capability}", extra_flags=flags).ptx)
    assert set(kernels) == {"reduce", "generic", "empty", "limited"}
    reduce = kernels["reduce"]
    assert reduce.max_threads == (256, 1, 1)
    assert [(p.type.nbytes, p.offset, p.nbytes) for p in reduce.parameters] == [
        (8, 0, 8),
        (8, 8, 8),
        (4, 16, 4),
        (1, 24, 32),
        (1, 56, 1),
        (1, 57, 1),
        (2, 58, 2),
    ]
    opcodes = {i.opcode for k in kernels.values() for i in k.instructions}
    assert {"shfl", "vote", "atom", "bar", "fma", "trap", "exit", "activemask"} <= opcodes
    assert [kernels["limited"].required_threads, kernels["empty"].parameters] == [None, ()]


@compilers
def test_source_lines_are_those_of_the_text(compiler: nvrtc.Nvrtc) -> None:
    text = """
__device__ __forceinline__ float square(float x) {
    return x * x;                                       // 3
}
__device__ __forceinline__ float once_more(float x) {
    return square(x) + 1.0f;                            // 6
}
extern "C" __global__ void k(float *x, float *y) {
    const float loaded = x[threadIdx.x];                // 9
    y[threadIdx.x] = once_more(loaded) / 3.0f;          // 10
}
"""
    for capability in CAPABILITIES:
        ptx = compiler.compile(text, f"compute_{capability}", extra_flags=("-lineinfo",)).ptx
        places = {i.opcode: i.place for i in check(ptx)["k"].instructions if i.opcode != "add"}
        adds = [i for i in check(ptx)["k"].instructions if i.opcode == "add" and i.modifiers[-1] == "f32"]
        assert [(p.place.source, p.place.inlined_at) for p in adds] == [(6, 10)]
        multiplied = next(i for i in check(ptx)["k"].instructions if i.name.startswith("mul.rn"))
        assert (multiplied.place.source, multiplied.place.calls) == (3, (6, 10))
        assert (places["div"].source, places["div"].calls) == (10, ())
        loads = [i for i in check(ptx)["k"].instructions if i.name.startswith("ld.global")]
        assert [i.place.source for i in loads] == [9]


@compilers
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "__device__ __noinline__ float f(float x) { return x * x + 1; }\n"
            'extern "C" __global__ void k(float *x) { x[0] = f(x[1]); }',
            "functions aren't supported",
        ),
        ('extern "C" __global__ void k(int *x) { printf("%d", x[0]); }', "functions aren't supported"),
        (
            '__device__ int a; __device__ int *b = &a;\nextern "C" __global__ void k(int *x) { x[0] = *b; }',
            r"'generic\(a\)' as an initial value is no number",
        ),
    ],
)
def test_what_is_refused(compiler: nvrtc.Nvrtc, text: str, message: str) -> None:
    ptx = compiler.compile(text, "compute_90").ptx
    with pytest.raises(PtxError, match=message) as raised:
        parse(ptx)
    assert raised.value.line > 9
