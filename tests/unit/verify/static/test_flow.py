"""Loops of kernels in PTX, and what one iteration comes to."""

from __future__ import annotations

from solvergen.verify.static.flow import Flow
from tests.unit.verify.static.ptx import kernel

NESTED = """
    mov.u32 %r1, 0;             // 0
OUTER:
    mov.u32 %r2, 0;             // 1
INNER:
    add.s32 %r2, %r2, 1;        // 2
    @%p1 bra SKIP;              // 3
    add.s32 %r3, %r3, 1;        // 4
    bra.uni JOIN;               // 5
SKIP:
    @%p3 add.s32 %r3, %r3, 2;   // 6
JOIN:
    @%p2 bra INNER;             // 7
    add.s32 %r1, %r1, 1;        // 8
    @!%p2 bra OUTER;            // 9
    ret;                        // 10
    mov.u32 %r9, 9;             // 11, never reached
    bra OUTER;                  // 12
"""


def test_loops_are_found_with_all_that_is_in_them() -> None:
    flow = Flow(kernel(NESTED))
    assert [(loop.head, sorted(loop.body)) for loop in flow.loops] == [
        (1, list(range(1, 10))),
        (2, list(range(2, 8))),
    ]


def test_the_innermost_around_something() -> None:
    flow = Flow(kernel(NESTED))
    assert [loop.head for loop in flow.innermost([4])] == [2]
    assert [loop.head for loop in flow.innermost([8])] == [1]
    assert [loop.head for loop in flow.innermost([4, 8])] == [2]
    assert flow.innermost([0, 10]) == ()


def test_counts_are_of_the_cheapest_and_the_dearest_path() -> None:
    flow = Flow(kernel(NESTED))
    outer, inner = flow.loops
    assert flow.counts(inner, {2: 1}) == (1, 1)
    assert flow.counts(inner, {4: 5}) == (0, 5)
    assert flow.counts(inner, {4: 5, 6: 3}) == (0, 5)  # 6 is guarded
    assert flow.counts(inner, {2: 1, 4: 5, 7: 1}) == (2, 7)
    assert flow.counts(inner, {8: 1, 0: 1}) == (0, 0)
    assert flow.counts(outer, {8: 1, 4: 2}) == (1, 3)


def test_two_ways_back_to_one_beginning_are_one_loop() -> None:
    flow = Flow(kernel("HEAD: add.s32 %r1, %r1, 1; @%p1 bra HEAD; add.s32 %r2, %r2, 1; @%p2 bra HEAD; ret;"))
    (loop,) = flow.loops
    assert sorted(loop.body) == [0, 1, 2, 3]
    assert flow.counts(loop, {0: 1, 2: 1}) == (1, 2)


def test_a_way_out_of_the_middle_is_no_iteration() -> None:
    flow = Flow(kernel("HEAD: add.s32 %r1, %r1, 1; @%p1 bra OUT; add.s32 %r2, %r2, 1; bra HEAD; OUT: ret;"))
    (loop,) = flow.loops
    assert flow.counts(loop, {2: 1}) == (1, 1)


def test_without_loops_or_instructions() -> None:
    assert Flow(kernel("ret;")).loops == ()
    assert Flow(kernel("")).loops == ()
