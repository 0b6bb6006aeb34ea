"""Threads that part and meet again: whole random control flows, held to threads that run one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.ptx import execute, fault_of, kernel_of

REGISTERS = 5
OPERATIONS = ("add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "mov.u32")


@dataclass(frozen=True)
class Line:
    """``registers[target] = a operation b``; ``guard``: only if that register's lowest bit is ``sense``."""

    operation: str
    target: int
    a: int
    b: int
    guard: int | None
    sense: bool


@dataclass(frozen=True)
class Part:
    """Lines; then, if bit ``bit`` of register ``asked`` is ``sense``, to ``to``, else to the next part."""

    lines: tuple[Line, ...]
    asked: int
    bit: int
    sense: bool
    to: int


register = st.integers(0, REGISTERS - 1)
lines = st.builds(
    Line,
    st.sampled_from(OPERATIONS),
    register,
    register,
    register,
    st.one_of(st.none(), register),
    st.booleans(),
)
parts = st.lists(
    st.builds(
        Part,
        st.lists(lines, max_size=4).map(tuple),
        register,
        st.integers(0, 3),
        st.booleans(),
        st.integers(0, 7),
    ),
    min_size=1,
    max_size=6,
)
FUEL = 12


def text_of(program: list[Part]) -> str:
    """The program in PTX. Every part burns fuel; without any, or behind the last part, a thread ends."""
    text = [
        f".reg .b32 %r<{REGISTERS + 6}>;",
        ".reg .b64 %rd<4>;",
        ".reg .pred %p<4>;",
        "ld.param.u64 %rd1, [out];",
        "mov.u32 %r10, %tid.x;",
        "mov.u32 %r9, %ntid.x;",
        "mov.u32 %r8, %ctaid.x;",
        "mad.lo.u32 %r10, %r8, %r9, %r10;",
        f"mov.u32 %r6, {FUEL};",
    ]
    text += [f"mad.lo.u32 %r{i}, %r10, {2 * i + 1}, {7 * i};" for i in range(REGISTERS)]
    for number, part in enumerate(program):
        text += [f"L{number}:", "setp.eq.u32 %p1, %r6, 0;", "@%p1 bra END;", "sub.u32 %r6, %r6, 1;"]
        for line in part.lines:
            guard = ""
            if line.guard is not None:
                text += [f"and.b32 %r7, %r{line.guard}, 1;", "setp.ne.u32 %p2, %r7, 0;"]
                guard = "@%p2 " if line.sense else "@!%p2 "
            b = "" if line.operation.startswith("mov") else f", %r{line.b}"
            text.append(f"{guard}{line.operation} %r{line.target}, %r{line.a}{b};")
        text += [
            f"and.b32 %r7, %r{part.asked}, {1 << part.bit};",
            "setp.ne.u32 %p3, %r7, 0;",
            f"@{'' if part.sense else '!'}%p3 bra {f'L{part.to}' if part.to < len(program) else 'END'};",
        ]
    text += ["END:", f"mul.wide.u32 %rd2, %r10, {4 * REGISTERS};", "add.s64 %rd3, %rd1, %rd2;"]
    text += [f"st.global.u32 [%rd3+{4 * i}], %r{i};" for i in range(REGISTERS)]
    return kernel_of("\n".join([*text, "ret;"]))


def run_one(program: list[Part], thread: int) -> list[int]:
    """What one thread leaves in its registers, in Python's integers."""
    values = [(thread * (2 * i + 1) + 7 * i) % 2**32 for i in range(REGISTERS)]
    at, fuel = 0, FUEL
    while at < len(program) and fuel:
        fuel -= 1
        part = program[at]
        for line in part.lines:
            if line.guard is not None and bool(values[line.guard] & 1) != line.sense:
                continue
            a, b = values[line.a], values[line.b]
            values[line.target] = {
                "add.u32": a + b,
                "sub.u32": a - b,
                "xor.b32": a ^ b,
                "mul.lo.u32": a * b,
                "mov.u32": a,
            }[line.operation] % 2**32
        goes = bool(values[part.asked] >> part.bit & 1) == part.sense
        at = part.to if goes else at + 1
    return values


@settings(max_examples=150, deadline=None)
@given(parts, st.sampled_from([(1, 1), (1, 7), (2, 40), (3, 64)]))
def test_any_control_flow(program: list[Part], shape: tuple[int, int]) -> None:
    blocks, threads = shape
    out = np.zeros((blocks * threads, REGISTERS), np.uint32)
    execute(text_of(program), out, blocks=blocks, threads=threads)
    assert out.tolist() == [run_one(program, thread) for thread in range(blocks * threads)]


ADDRESS = """
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .b16 %rs<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
"""


def test_guards_on_loads_stores_exits_and_results() -> None:
    text = kernel_of(
        ADDRESS
        + """
        setp.lt.u32 %p1, %r1, 5;
        setp.lt.u32 %p2, %r1, 10;
        mov.u32 %r2, 100;
        @%p1 ld.global.u32 %r2, [%rd3+-400];
        @!%p1 add.u32 %r2, %r2, %r1;
        @!%p2 ret;
        @%p2 st.global.u32 [%rd3], %r2;
        ret;
        """
    )
    memory = np.arange(132, dtype=np.uint32)
    out = memory[100:]
    fault = fault_of(lambda: execute(text, out))
    assert fault.instruction == "ld.global.u32"
    assert fault.thread == 0
    text = text.replace("[%rd3+-400]", "[%rd3+40]")
    execute(text, out)
    assert out.tolist() == [*range(110, 115), *range(105, 110), *range(110, 132)]


def test_a_branch_that_says_it_is_uniform() -> None:
    text = kernel_of(
        ADDRESS
        + """
        setp.lt.u32 %p1, %r1, 32;
        @%p1 bra.uni A;
        st.global.u32 [%rd3], %r1;
    A:  ret;
        """
    )
    out = np.zeros(64, np.uint32)
    execute(text, out, threads=64)
    assert out.tolist() == [0] * 32 + list(range(32, 64))
    fault = fault_of(lambda: execute(text.replace("%r1, 32", "%r1, 40"), out, threads=64))
    assert "said to be the same for all" in str(fault)
    assert fault.thread is not None
    assert fault.thread >= 32


def test_reading_a_register_that_was_not_written() -> None:
    text = kernel_of(
        ADDRESS
        + """
        setp.lt.u32 %p1, %r1, 3;
        @%p1 mov.u32 %r2, 7;
        @%p1 st.global.u32 [%rd3], %r2;
        ret;
        """
    )
    out = np.zeros(32, np.uint32)
    execute(text, out)
    assert out.tolist() == [7, 7, 7] + [0] * 29
    fault = fault_of(lambda: execute(text.replace("@%p1 st", "st"), out))
    assert "reads %r2, to which it has written nothing" in str(fault)
    assert fault.thread == 3
    fault = fault_of(lambda: execute(text.replace("setp.lt.u32 %p1", "setp.lt.u32 %p2"), out))
    assert "reads %p1" in str(fault)


def test_the_end_of_the_text_is_no_exit() -> None:
    fault = fault_of(lambda: execute(kernel_of(ADDRESS), np.zeros(32, np.uint32)))
    assert "runs off the end" in str(fault)


def test_threads_that_end_early_leave_the_others_alone() -> None:
    text = kernel_of(
        ADDRESS
        + """
        and.b32 %r2, %r1, 1;
        setp.eq.u32 %p1, %r2, 0;
        @%p1 ret;
        mov.u32 %r3, 0;
        mov.u32 %r4, 1000;
    LOOP:
        add.u32 %r4, %r4, %r1;
        add.u32 %r3, %r3, 1;
        setp.lt.u32 %p2, %r3, %r1;
        @%p2 bra LOOP;
        st.global.u32 [%rd3], %r4;
        ret;
        """
    )
    out = np.zeros(96, np.uint32)
    execute(text, out, threads=96)
    assert out.tolist() == [1000 + t * t if t % 2 else 0 for t in range(96)]
