"""What a launch may be, what a thread can ask about it, and that it leaves nothing behind when it fails."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import PtxError
from solvergen.runtime.buffers import address_of
from solvergen.runtime.ptx.machine.buffers import Buffer
from solvergen.runtime.ptx.machine.faults import Shape
from solvergen.runtime.ptx.machine.launch import Launch, run
from tests.support.ptx import execute, fault_of, kernel_of, program_of

STORE = """
    .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;
    mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mov.u32 %r6, %ntid.z;
    mov.u32 %r7, %ctaid.x; mov.u32 %r8, %ctaid.y; mov.u32 %r9, %ctaid.z;
    mov.u32 %r10, %nctaid.x; mov.u32 %r11, %nctaid.y; mov.u32 %r12, %nctaid.z;
    mad.lo.u32 %r13, %r9, %r11, %r8; mad.lo.u32 %r13, %r13, %r10, %r7;
    mul.lo.u32 %r14, %r4, %r5; mul.lo.u32 %r14, %r14, %r6; mul.lo.u32 %r13, %r13, %r14;
    mad.lo.u32 %r14, %r3, %r5, %r2; mad.lo.u32 %r14, %r14, %r4, %r1; add.u32 %r13, %r13, %r14;
    mul.wide.u32 %rd2, %r13, 4; add.s64 %rd3, %rd1, %rd2;
"""


def values_of(special: str, blocks: tuple[int, ...], threads: tuple[int, ...]) -> list[int]:
    """What each thread finds in a special register, in the order of its number."""
    out = np.zeros(int(np.prod(blocks) * np.prod(threads)), np.uint32)
    body = STORE + f"mov.u32 %r15, {special}; st.global.u32 [%rd3], %r15; ret;"
    execute(kernel_of(body), out, blocks=blocks, threads=threads)
    return out.tolist()


SHAPES = [((1,), (1,)), ((3,), (40,)), ((2, 3), (5, 2)), ((2, 1, 2), (3, 2, 4))]


@pytest.mark.parametrize(("blocks", "threads"), SHAPES)
def test_special_registers(blocks: tuple[int, ...], threads: tuple[int, ...]) -> None:
    grid, block = Shape(*blocks), Shape(*threads)
    everyone = [
        (bx, by, bz, tx, ty, tz)
        for bz in range(grid.z)
        for by in range(grid.y)
        for bx in range(grid.x)
        for tz in range(block.z)
        for ty in range(block.y)
        for tx in range(block.x)
    ]
    for place, name in enumerate(("%ctaid.x", "%ctaid.y", "%ctaid.z", "%tid.x", "%tid.y", "%tid.z")):
        assert values_of(name, blocks, threads) == [who[place] for who in everyone]
    for axis in "xyz":
        assert set(values_of(f"%ntid.{axis}", blocks, threads)) == {getattr(block, axis)}
        assert set(values_of(f"%nctaid.{axis}", blocks, threads)) == {getattr(grid, axis)}
    inner = list(range(block.count)) * grid.count
    assert values_of("%laneid", blocks, threads) == [i % 32 for i in inner]
    assert values_of("%warpid", blocks, threads) == [i // 32 for i in inner]
    masks = {
        "eq": lambda lane: 1 << lane,
        "lt": lambda lane: (1 << lane) - 1,
        "le": lambda lane: (2 << lane) - 1,
        "gt": lambda lane: 2**32 - (2 << lane),
        "ge": lambda lane: 2**32 - (1 << lane),
    }
    for name, mask in masks.items():
        assert values_of(f"%lanemask_{name}", blocks, threads) == [mask(i % 32) for i in inner]


def test_there_may_be_more_blocks_than_run_at_once() -> None:
    assert values_of("%ctaid.x", (3000,), (32,)) == [i // 32 for i in range(96000)]


INCREMENT = kernel_of(
    STORE + "ld.global.u32 %r15, [%rd3]; add.u32 %r15, %r15, 1; st.global.u32 [%rd3], %r15; ret;"
)


def test_each_thread_runs_once_although_there_are_two_orders() -> None:
    out = np.arange(20000, dtype=np.uint32)
    execute(INCREMENT, out, blocks=200, threads=100)
    assert out.tolist() == list(range(1, 20001))


def test_a_launch_that_fails_changes_nothing() -> None:
    out = np.zeros(100, np.uint32)
    fault = fault_of(lambda: execute(INCREMENT, out, blocks=4, threads=26))
    assert (fault.block, fault.thread) == (3, 22)
    assert fault.kernel == "k"
    assert "block 3 of 4, thread 22 of 26" in str(fault)
    assert not out.any()


def test_a_fault_in_more_than_one_dimension_says_where() -> None:
    out = np.zeros(23, np.uint32)
    fault = fault_of(lambda: execute(INCREMENT, out, blocks=(2, 2), threads=(3, 2)))
    assert "block 3 (x 1, y 1) of 4, thread 5 (x 2, y 1) of 6" in str(fault)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "1 parameters, and was given 0"),
        ((np.uint64(0), np.uint64(0)), "1 parameters, and was given 2"),
        ((np.uint32(0),), "has 8 bytes, its argument 4"),
    ],
)
def test_arguments_that_do_not_fit(arguments: tuple[np.generic, ...], problem: str) -> None:
    assert problem in str(fault_of(lambda: execute(INCREMENT, *arguments)))


@pytest.mark.parametrize(
    ("directive", "blocks", "threads", "problem"),
    [
        ("", 0, 32, "has none"),
        ("", 1, 0, "has none"),
        ("", (1, 1, -1), 32, "has none"),
        ("", 1, 1025, "too large"),
        (".maxntid 64, 1, 1", 1, 65, "at most 64 threads a block, not 65"),
        (".maxntid 8, 8", 1, (13, 5), "at most 64 threads a block, not 13 x 5"),
        (".reqntid 64", 1, 32, "for blocks of 64 threads, not 32"),
        (".reqntid 8, 8", 1, 64, "for blocks of 8 x 8 threads, not 64"),
        ("", 2**25, 32, "more than can be interpreted"),
    ],
)
def test_shapes_that_can_not_be(directive: str, blocks: object, threads: object, problem: str) -> None:
    text = INCREMENT.replace("\n{", f"\n{directive}\n{{", 1)
    out = np.zeros(64, np.uint32)
    fault = fault_of(lambda: execute(text, out, blocks=blocks, threads=threads))  # type: ignore[arg-type]
    assert problem in str(fault)


def test_shapes_that_are_just_right() -> None:
    for directive, threads in ((".maxntid 64, 1, 1", 64), (".maxntid 64", (8, 8)), (".reqntid 8, 8", (8, 8))):
        out = np.zeros(64, np.uint32)
        execute(INCREMENT.replace("\n{", f"\n{directive}\n{{", 1), out, threads=threads)
        assert out.all()


def test_dynamic_shared_memory_that_nobody_asked_for() -> None:
    fault = fault_of(lambda: execute(INCREMENT, np.zeros(32, np.uint32), shared=16))
    assert "no dynamic shared memory, and was given 16" in str(fault)


def test_there_is_no_such_kernel() -> None:
    with pytest.raises(PtxError, match="there is no kernel other; the text has k"):
        program_of(INCREMENT, "other")


class TestBuffers:
    memory = np.arange(64, dtype=np.uint32)
    copy = kernel_of(
        STORE + "ld.param.u64 %rd4, [from]; add.s64 %rd5, %rd4, %rd2; "
        "ld.global.u32 %r15, [%rd5]; st.global.u32 [%rd3], %r15; ret;",
        ".param .u64 out, .param .u64 from",
    )

    def launch(self, *buffers: Buffer, to: int, source: int) -> None:
        run(Launch(program_of(self.copy), Shape(1), Shape(8), (np.uint64(to), np.uint64(source)), buffers))

    def buffer(self, name: str, begin: int, end: int, *, writable: bool = False) -> Buffer:
        part = self.memory[begin:end]
        return Buffer(name, address_of(part), part.view(np.uint8), writable, 4)

    def test_what_is_read_may_overlap(self) -> None:
        out = np.zeros(8, np.uint32)
        target = Buffer("out", address_of(out), out.view(np.uint8), True, 4)
        one, two = self.buffer("one", 0, 12), self.buffer("two", 8, 20)
        self.launch(target, two, one, to=target.address, source=one.address + 16)
        assert out.tolist() == list(range(4, 12))
        fault = fault_of(lambda: self.launch(target, one, two, to=target.address, source=one.address + 56))
        assert "one and two" in str(fault)

    @pytest.mark.parametrize("which", [0, 1])
    def test_what_is_written_may_not(self, which: int) -> None:
        one = self.buffer("one", 0, 12, writable=which == 0)
        two = self.buffer("two", 8, 20, writable=which == 1)
        fault = fault_of(lambda: self.launch(one, two, to=0, source=0))
        assert "one and two share memory, and the kernel may write it" in str(fault)

    def test_neighbours_without_a_gap_are_apart(self) -> None:
        out = np.zeros(12, np.uint32)
        one = Buffer("one", address_of(out), out[:6].view(np.uint8), True, 4)
        two = Buffer("two", address_of(out) + 24, out[6:].view(np.uint8), True, 4)
        source = self.buffer("from", 0, 8)
        self.launch(one, two, source, to=one.address, source=source.address)
        assert out.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0]
        wide = kernel_of(STORE + "st.global.v4.u32 [%rd1+16], {%r1, %r1, %r1, %r1}; ret;")
        spare = np.zeros(16, np.uint32)
        begin = -spare.ctypes.data % 16 // 4
        both = spare[begin : begin + 12]
        first = Buffer("one", address_of(both), both[:6].view(np.uint8), True, 4)
        second = Buffer("two", address_of(both) + 24, both[6:].view(np.uint8), True, 4)
        launch = Launch(program_of(wide), Shape(1), Shape(1), (np.uint64(first.address),), (first, second))
        assert "of which 8 lie behind the end of one" in str(fault_of(lambda: run(launch)))

    def test_an_address_need_not_be_that_of_the_array(self) -> None:
        out = np.zeros(8, np.uint32)
        target = Buffer("out", 1 << 40, out.view(np.uint8), True, 4)
        source = Buffer("from", (1 << 40) + 32, self.memory[:8].view(np.uint8), False, 4)
        self.launch(target, source, to=1 << 40, source=(1 << 40) + 32)
        assert out.tolist() == list(range(8))

    def test_what_was_written_is_known_afterwards(self) -> None:
        out = np.zeros(16, np.uint32)
        written = np.zeros(64, np.bool_)
        target = Buffer("out", address_of(out), out.view(np.uint8), True, 4, written)
        source = self.buffer("from", 0, 8)
        self.launch(target, source, to=target.address, source=source.address)
        assert written.tolist() == [True] * 32 + [False] * 32
        fault = fault_of(lambda: self.launch(target, to=target.address, source=target.address + 32))
        assert "from byte 32, which nothing has written" in str(fault)
