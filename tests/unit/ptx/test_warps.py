"""Shuffles, votes and reductions over the lanes of a warp, held to the ISA's pseudo-code lane by lane."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.errors import PtxError
from tests.support.ptx import execute, fault_of, kernel_of, program_of

START = """
    .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
"""


def shuffled(mode: str, lane: int, b: int, c: int) -> tuple[int, bool]:
    """The lane that a value is taken from, and whether it is the one that was asked for."""
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    last = (lane & segment) | (clamp & ~segment)
    first = lane & segment
    if mode == "up":
        source, inside = lane - b, lane - b >= last
    elif mode == "down":
        source, inside = lane + b, lane + b <= last
    elif mode == "bfly":
        source, inside = lane ^ b, lane ^ b <= last
    else:
        source = first | (b & ~segment)
        inside = source <= last
    return (source if inside else lane), inside


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["up", "down", "bfly", "idx"]),
    st.integers(0, 40),
    st.integers(0, 31),
    st.sampled_from([0, 16, 24, 28, 30, 31]),
)
def test_shuffles(mode: str, b: int, clamp: int, segment: int) -> None:
    c = segment << 8 | clamp
    text = kernel_of(
        START
        + f"""
        mul.lo.u32 %r2, %r1, 3;
        shfl.sync.{mode}.b32 %r3|%p1, %r2, {b}, {c}, 0xffffffff;
        selp.u32 %r4, 1000, 0, %p1;
        add.u32 %r3, %r3, %r4;
        st.global.u32 [%rd3], %r3;
        ret;
        """
    )
    out = np.zeros(64, np.uint32)
    execute(text, out, threads=64)
    expected = []
    for thread in range(64):
        source, inside = shuffled(mode, thread % 32, b, c)
        expected.append((thread // 32 * 32 + source) * 3 + 1000 * inside)
    assert out.tolist() == expected


def test_the_lane_may_differ_from_thread_to_thread() -> None:
    text = kernel_of(
        START
        + """
        xor.b32 %r2, %r1, 31;
        shfl.sync.idx.b32 %r3, %r1, %r2, 31, -1;
        st.global.u32 [%rd3], %r3;
        ret;
        """
    )
    out = np.zeros(32, np.uint32)
    execute(text, out)
    assert out.tolist() == list(range(31, -1, -1))


MASKED = (
    START
    + """
    setp.lt.u32 %p1, %r1, 12;
    mov.u32 %r9, 0;
    @!%p1 bra OTHERS;
    OPERATION 0x00000fff;
    bra DONE;
OTHERS:
    OPERATION 0xfffff000;
DONE:
    st.global.u32 [%rd3], %r9;
    ret;
"""
)


def masked(operation: str) -> list[int]:
    out = np.zeros(32, np.uint32)
    execute(kernel_of(MASKED.replace("OPERATION", operation)), out)
    return out.tolist()


LOW, HIGH = range(12), range(12, 32)


@pytest.mark.parametrize(
    ("operation", "low", "high"),
    [
        ("redux.sync.add.u32 %r9, %r1,", sum(LOW), sum(HIGH)),
        ("redux.sync.min.u32 %r9, %r1,", 0, 12),
        ("redux.sync.max.s32 %r9, %r1,", 11, 31),
        ("redux.sync.or.b32 %r9, %r1,", 15, 31),
        ("redux.sync.and.b32 %r9, %r1,", 0, 0),
        ("redux.sync.xor.b32 %r9, %r1,", 0, 0),
        ("vote.sync.ballot.b32 %r9, %p1,", 0xFFF, 0),
        ("vote.sync.ballot.b32 %r9, !%p1,", 0, 0xFFFFF000),
    ],
)
def test_groups_are_apart(operation: str, low: int, high: int) -> None:
    assert masked(operation) == [low] * 12 + [high] * 20


@pytest.mark.parametrize(
    ("mode", "asked", "expected"),
    [
        ("all", "%p1", [1, 0]),
        ("any", "%p1", [1, 0]),
        ("uni", "%p1", [1, 1]),
        ("all", "%p2", [0, 0]),
        ("any", "%p2", [1, 1]),
        ("uni", "%p2", [0, 0]),
    ],
)
def test_votes(mode: str, asked: str, expected: list[int]) -> None:
    text = MASKED.replace("OPERATION 0x00000fff;", f"vote.sync.{mode}.pred %p3, {asked}, 0x00000fff;")
    text = text.replace("OPERATION 0xfffff000;", f"vote.sync.{mode}.pred %p3, {asked}, 0xfffff000;")
    text = text.replace("mov.u32 %r9, 0;", "and.b32 %r8, %r1, 1; setp.eq.u32 %p2, %r8, 0;")
    text = text.replace("DONE:", "DONE: selp.u32 %r9, 1, 0, %p3;")
    out = np.zeros(32, np.uint32)
    execute(kernel_of(text), out)
    assert out.tolist() == [expected[0]] * 12 + [expected[1]] * 20


def test_active_lanes() -> None:
    text = MASKED.replace("OPERATION 0x00000fff;", "activemask.b32 %r9;")
    text = text.replace("OPERATION 0xfffff000;", "activemask.b32 %r9;")
    out = np.zeros(32, np.uint32)
    execute(kernel_of(text), out)
    assert out.tolist() == [0xFFF] * 12 + [0xFFFFF000] * 20


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        ("0x00000fff", "doesn't name"),  # by the lanes from 12 on
        ("0xfffff001", "waits for lanes 0 of its warp"),
        ("0x000fffff", "waits for lanes 0, 1, 2"),  # as many as are there, but not the same
    ],
)
def test_lanes_that_are_not_there(mask: str, problem: str) -> None:
    text = MASKED.replace("OPERATION 0x00000fff;", "mov.u32 %r9, 1;")
    text = text.replace("OPERATION 0xfffff000;", f"shfl.sync.bfly.b32 %r9, %r1, 1, 31, {mask};")
    fault = fault_of(lambda: execute(kernel_of(text), np.zeros(32, np.uint32)))
    assert problem in str(fault)
    assert fault.thread == 12


def test_a_lane_that_is_not_in_its_own_mask() -> None:
    text = kernel_of(START + "shfl.sync.bfly.b32 %r9, %r1, 1, 31, 0xffff; st.global.u32 [%rd3], %r9; ret;")
    fault = fault_of(lambda: execute(text, np.zeros(32, np.uint32)))
    assert "is lane 16, which its mask 0x0000ffff doesn't name" in str(fault)
    assert fault.thread == 16


def test_a_value_from_a_lane_outside_of_the_mask() -> None:
    text = MASKED.replace("OPERATION", "shfl.sync.idx.b32 %r9, %r1, 20, 31,")
    fault = fault_of(lambda: execute(kernel_of(text), np.zeros(32, np.uint32)))
    assert "takes a value from lane 20, which doesn't take part" in str(fault)
    assert fault.thread == 0


def test_a_warp_that_is_not_full() -> None:
    """A mask names lanes that the block doesn't have: what they would give is undefined."""
    text = kernel_of(START + "shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1; st.global.u32 [%rd3], %r9; ret;")
    fault = fault_of(lambda: execute(text, np.zeros(40, np.uint32), threads=40))
    assert "waits for lanes 8, 9" in str(fault)
    assert fault.thread == 32


def test_lanes_come_one_after_the_other() -> None:
    """The far side of a branch lies behind the meeting, which waits for it."""
    text = kernel_of(
        START
        + """
        setp.lt.u32 %p1, %r1, 7;
        mov.u32 %r2, 5;
        @%p1 bra FAR;
    BACK:
        shfl.sync.idx.b32 %r9, %r2, 3, 31, -1;
        st.global.u32 [%rd3], %r9;
        ret;
    FAR:
        mov.u32 %r2, 9;
        bra BACK;
        """
    )
    out = np.zeros(32, np.uint32)
    execute(text, out)
    assert out.tolist() == [9] * 32


@pytest.mark.parametrize(
    "instruction",
    [
        "shfl.sync.idx.b64 %rd1, %rd1, 0, 31, -1;",
        "shfl.idx.b32 %r1, %r1, 0, 31;",
        "shfl.sync.idx.b32 %r1, %r1, 0, 31;",
        "vote.all.pred %p1, %p2;",
        "vote.sync.ballot.pred %p1, %p2, -1;",
        "match.any.sync.b32 %r1, %r2, -1;",
        "redux.sync.add.f32 %r1, %r2, -1;",
        "bar.warp.arrive -1;",
        "elect.sync %r1|%p1, -1;",
    ],
)
def test_what_is_not_known_is_refused(instruction: str) -> None:
    with pytest.raises(PtxError) as refused:
        program_of(kernel_of(START + instruction + "ret;"))
    assert refused.value.line
