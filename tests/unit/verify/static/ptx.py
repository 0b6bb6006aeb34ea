"""Kernels in PTX, as short as an update can be, for tests of what is said about them."""

from __future__ import annotations

from solvergen.runtime.ptx.module import Kernel
from solvergen.runtime.ptx.text import parse

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"
REGISTERS = (
    ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .b64 %rd<40>, %from<9>, %to<9>; "
    ".reg .f32 %f<40>; .reg .f64 %fd<9>;"
)


def kernel(body: str) -> Kernel:
    """The kernel with this body; its first line is the text's sixth."""
    text = (
        f"{HEAD}.visible .entry sg_kernel(.param .u64 pointers, .param .u64 rows, .param .u64 table) {{\n"
        f"{REGISTERS}\n{body}\n}}\n"
    )
    return parse(text).kernels["sg_kernel"]


POINTERS = """
    ld.param.u64 %rd1, [pointers];
    cvta.to.global.u64 %rd2, %rd1;
    ld.param.u64 %rd3, [table];
    cvta.to.global.u64 %rd4, %rd3;
    mul.wide.s32 %rd5, %r1, 24;
    add.s64 %rd6, %rd2, %rd5;
    ld.global.u64 %rd10, [%rd6];
    ld.global.u64 %rd11, [%rd6+8];
    ld.global.u64 %rd12, [%rd6+16];
    ld.global.f32 %f30, [%rd4];
    mov.u32 %r2, %tid.x;
"""
"""Buffers 0, 1 and 2 of a tensor: %rd10, %rd11, %rd12."""


def loop(inside: str, *, label: str = "MAIN") -> str:
    """A loop over words; %rd20 is the offset in bytes."""
    return f"""
{label}:
    mul.wide.s32 %rd20, %r2, 16;
    {inside}
    add.s32 %r2, %r2, 256;
    setp.lt.s32 %p8, %r2, %r3;
    @%p8 bra {label};
"""


def load(buffer: int, register: int = 0, modifiers: str = "v4.f32") -> str:
    """Loads a word of a buffer (or, by ``modifiers``, something else) into %f<register> and following."""
    lanes = int(modifiers[1]) if modifiers[0] == "v" else 1
    values = ", ".join(f"%f{register + lane}" for lane in range(lanes))
    to = f"{{{values}}}" if lanes > 1 else values
    return f"add.s64 %from{buffer}, %rd1{buffer}, %rd20; ld.global.{modifiers} {to}, [%from{buffer}];\n"


def store(buffer: int, register: int = 0, modifiers: str = "v4.f32", guard: str = "") -> str:
    """Stores as ``load`` loads."""
    lanes = int(modifiers[1]) if modifiers[0] == "v" else 1
    values = ", ".join(f"%f{register + lane}" for lane in range(lanes))
    what = f"{{{values}}}" if lanes > 1 else values
    return f"add.s64 %to{buffer}, %rd1{buffer}, %rd20; {guard} st.global.{modifiers} [%to{buffer}], {what};\n"
