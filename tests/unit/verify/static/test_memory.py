"""Accesses: to which buffer each goes; main loops that have too many, too few or narrow ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from solvergen.verify.static.buffers import accesses
from solvergen.verify.static.memory import Memory, Traffic, memory_of
from solvergen.verify.static.source import Source
from tests.unit.verify.static.ptx import POINTERS, kernel, load, loop, store

BUFFERS = {"param": 4, "grad": 4, "m": 4}
TRAFFIC = Traffic(BUFFERS, {"param": 1, "grad": 1, "m": 1}, {"param": 1, "m": 1})
RIGHT = load(0) + load(1, 4) + load(2, 8) + store(0) + store(2, 8)
SINGLES = "".join(
    [load(0, 0, "f32"), load(1, 1, "f32"), load(2, 2, "f32"), store(0, 0, "f32"), store(2, 2, "f32")]
)


def looked_at(inside: str, *, singles: str = SINGLES, before: str = "", traffic: Traffic = TRAFFIC) -> Memory:
    body = POINTERS + before + loop(inside) + loop(singles, label="SINGLES") + "ret;"
    return memory_of(kernel(body), Source(""), traffic)


def found(memory: Memory) -> list[tuple[str, str]]:
    return [(f.check, f.message) for f in memory.findings]


class TestBuffers:
    def test_by_where_the_address_comes_from(self) -> None:
        body = f"""{POINTERS}
            sub.s64 %rd30, %rd11, %rd1;         // as a displacement from the table
            add.s64 %rd31, %rd2, %rd30;
            selp.b64 %rd32, %rd12, %rd12, %p1;
            mad.wide.s32 %rd33, %r2, 4, %rd10;
            cvt.u32.u64 %r5, %rd10;             // what is computed from an address points nowhere
            mul.wide.s32 %rd34, %r5, 4;
            add.s64 %rd35, %rd12, %rd34;
            st.global.f32 [%rd31+4], %f1;
            st.global.v2.f32 [%rd32], {{%f1, %f2}};
            ld.global.v4.u32 {{%r5, %r6, %r7, %r8}}, [%rd33];
            ld.global.u16 %rs1, [%rd35];
            ret;"""
        of_buffers = [a for a in accesses(kernel(body), 3) if a.buffer is not None]
        assert [(a.kind, a.buffer, a.elements, a.bits) for a in of_buffers] == [
            ("st", 1, 1, 32),
            ("st", 2, 2, 32),
            ("ld", 0, 4, 32),
            ("ld", 2, 1, 16),
        ]

    def test_a_pointer_that_goes_around_a_loop(self) -> None:
        body = (
            POINTERS
            + "mov.u64 %rd30, %rd12;"
            + loop("st.global.f32 [%rd30], %f1; add.s64 %rd31, %rd30, 4; mov.u64 %rd30, %rd31;")
            + "ret;"
        )
        assert [a.buffer for a in accesses(kernel(body), 3) if a.kind == "st"] == [2]

    def test_tables_are_none(self) -> None:
        loads = accesses(kernel(POINTERS + "ret;"), 3)
        assert [a.buffer for a in loads] == [None] * 4

    @pytest.mark.parametrize(
        "address",
        ["selp.b64 %rd30, %rd11, %rd12, %p1;", "mov.u64 %rd30, %rd4;", "xor.b64 %rd30, %rd11, %rd12;"],
    )
    def test_what_cant_be_told(self, address: str) -> None:
        body = f"{POINTERS}{address} st.global.f32 [%rd30], %f1; ret;"
        assert [a.buffer for a in accesses(kernel(body), 3) if a.kind == "st"] == [-1]

    def test_a_pointer_beyond_the_buffers(self) -> None:
        assert [a.buffer for a in accesses(kernel(POINTERS + "st.global.f32 [%rd12], %f1; ret;"), 2)][
            -1
        ] == -1


class TestMainLoop:
    def test_each_buffer_once(self) -> None:
        memory = looked_at(RIGHT)
        assert memory == Memory(128, 3.0, 2.0, ())

    def test_two_words_an_iteration_are_no_more_for_each_element(self) -> None:
        assert looked_at(RIGHT + RIGHT) == Memory(128, 3.0, 2.0, ())

    def test_elements_of_several_widths(self) -> None:
        words = load(0) + load(1, 4) + load(1, 8) + load(2, 12) + load(2, 16)
        words += store(0) + store(2, 12) + store(2, 16)
        narrow = Traffic({"param": 2, "grad": 4, "m": 4}, TRAFFIC.loads, TRAFFIC.stores)
        singles = load(0, 0, "b16").replace("%f0", "%rs0") + load(1, 1, "f32") + load(2, 2, "f32")
        singles += store(0, 0, "b16").replace("%f0", "%rs0") + store(2, 2, "f32")
        assert looked_at(words, singles=singles, traffic=narrow) == Memory(128, 3.0, 2.0, ())

    def test_a_buffer_read_twice(self) -> None:
        memory = looked_at(RIGHT + load(1))
        assert found(memory) == [("traffic", "reads grad 2 times for each element; 1 is enough")]
        assert memory.loads == 4.0
        (finding,) = memory.findings
        assert finding.text.startswith("ld.global.v4.f32 {%f0")
        assert finding.line > 6

    def test_a_buffer_that_neednt_be_touched(self) -> None:
        needed = Traffic(BUFFERS, {"grad": 1, "m": 1}, {"param": 1})
        assert found(looked_at(RIGHT, traffic=needed))[:2] == [
            ("traffic", "reads param 1 times for each element; 0 are enough"),
            ("traffic", "writes m 1 times for each element; 0 are enough"),
        ]

    def test_a_buffer_written_twice(self) -> None:
        assert ("traffic", "writes m 2 times for each element; 1 is enough") in found(
            looked_at(RIGHT + store(2))
        )

    def test_a_store_that_is_missing(self) -> None:
        inside = load(0) + load(1, 4) + load(2, 8) + store(0)
        assert found(looked_at(inside)) == [("traffic", "an iteration may end without having written m")]

    @pytest.mark.parametrize("guard", ["@%p1", "@!%p1"])
    def test_a_store_under_a_condition(self, guard: str) -> None:
        inside = load(0) + load(1, 4) + load(2, 8) + store(0) + store(2, 8, guard=guard)
        assert found(looked_at(inside)) == [("traffic", "an iteration may end without having written m")]

    def test_a_store_of_what_was_loaded_may_be_left_out(self) -> None:
        inside = load(0) + load(1, 4) + load(2, 8) + store(0) + store(2, 8, guard="@%p1")
        assert found(looked_at(inside, traffic=replace(TRAFFIC, may_stay=frozenset({"m"})))) == []
        assert found(looked_at(inside, traffic=replace(TRAFFIC, may_stay=frozenset({"param"})))) != []

    def test_a_store_on_one_of_two_paths(self) -> None:
        inside = load(0) + load(1, 4) + load(2, 8) + store(0) + "@%p1 bra AROUND;" + store(2, 8) + "AROUND:"
        assert found(looked_at(inside)) == [("traffic", "an iteration may end without having written m")]

    def test_a_load_on_one_of_two_paths_is_no_load_too_many(self) -> None:
        inside = load(0) + load(2, 8) + "@%p1 bra AROUND;" + load(1, 4) + "AROUND:" + store(0) + store(2, 8)
        assert looked_at(inside) == Memory(128, 3.0, 2.0, ())

    def test_a_word_taken_apart(self) -> None:
        apart = "".join(store(2, 8 + k, "f32") for k in range(4))
        memory = looked_at(load(0) + load(1, 4) + load(2, 8) + store(0) + apart)
        assert found(memory) == [("width", "32 bits of m in the main loop instead of 128")] * 4
        assert memory.width == 32

    def test_wider_words_are_as_good(self) -> None:
        words = load(0, 0, "v8.f32") + load(1, 8, "v8.f32") + load(2, 16, "v8.f32")
        words += store(0, 0, "v8.f32") + store(2, 16, "v8.f32")
        assert looked_at(words) == Memory(256, 3.0, 2.0, ())

    def test_no_words_at_all(self) -> None:
        memory = looked_at(SINGLES)
        assert ("width", "no loop has accesses of 128 bits") in found(memory)
        assert memory.width == 32

    def test_a_table_read_again(self) -> None:
        assert found(looked_at(RIGHT + "ld.global.f32 %f31, [%rd4+4];")) == [
            ("traffic", "reads a table of the launch again for each word")
        ]

    def test_elements_one_by_one_are_held_to_the_same(self) -> None:
        assert found(looked_at(RIGHT, singles=SINGLES + load(1, 1, "f32"))) == [
            ("traffic", "reads grad 2 times for each element; 1 is enough")
        ]

    def test_outside_of_loops(self) -> None:
        assert found(looked_at(RIGHT, before="ld.global.f32 %f31, [%rd11];")) == [
            ("outside of loops", "touches a buffer only once")
        ]

    def test_other_memory(self) -> None:
        inside = (
            RIGHT
            + "ld.local.f32 %f31, [%rd30]; st.f32 [%rd10], %f31;"
            + "ld.shared.f32 %f31, [%r9]; ld.f32 %f31, [%rd10];"
            + "atom.global.add.f32 %f31, [%rd12], %f30; red.shared.add.u32 [%r9], 1;"
        )
        assert [f.check for f in looked_at(inside).findings] == [
            "local memory",
            "generic address",
            "generic address",
            "atomic",
            "atomic",
        ]


def test_bytes_for_each_element() -> None:
    traffic = Traffic({"param": 2, "grad": 4, "m": 4, "v": 4}, {"param": 1, "grad": 1, "m": 2}, {"v": 1})
    assert (traffic.nbytes, traffic.loaded) == (18, 14)
