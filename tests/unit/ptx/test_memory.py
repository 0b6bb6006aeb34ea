"""Loads, stores, atomics and addresses, by hand-written PTX."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.errors import PtxError
from solvergen.runtime.arrays import HostArray
from tests.support.ptx import execute, fault_of, kernel_of, program_of

START = """
    .reg .b16 %rs<9>; .reg .b32 %r<20>; .reg .b64 %rd<20>;
    .reg .f32 %f<20>; .reg .f64 %fd<9>; .reg .pred %p<9>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
"""


def run_on(out: HostArray, body: str, *, threads: int = 1, before: str = "", blocks: int = 1) -> None:
    execute(kernel_of(START + body + "ret;", before=before), out, threads=threads, blocks=blocks)


@pytest.mark.parametrize(
    ("kind", "register", "stored"),
    [
        ("u8", "%rs1", 0xF1),
        ("s8", "%rs1", 0xFFF1),
        ("b8", "%r2", 0xF1),
        ("s8", "%r2", 0xFFFFFFF1),
        ("s8", "%rd2", 0xFFFFFFFFFFFFFFF1),
        ("u16", "%rd2", 0xF2F1),
        ("s16", "%r2", 0xFFFFF2F1),
        ("b16", "%rs1", 0xF2F1),
        ("u32", "%rd2", 0xF4F3F2F1),
        ("s32", "%rd2", 0xFFFFFFFFF4F3F2F1),
        ("b64", "%rd2", 0xF8F7F6F5F4F3F2F1),
        ("f32", "%f2", 0xF4F3F2F1),
        ("f64", "%fd2", 0xF8F7F6F5F4F3F2F1),
    ],
)
def test_loads_extend_to_the_register(kind: str, register: str, stored: int) -> None:
    out = np.array([0xF8F7F6F5F4F3F2F1, 0], np.uint64)
    bits = {"%rs": 16, "%r2": 32, "%f2": 32}.get(register[:3], 64)
    run_on(out, f"ld.global.{kind} {register}, [%rd1]; st.global.b{bits} [%rd1+8], {register};")
    assert out[1] == stored


@pytest.mark.parametrize(
    ("kind", "register", "left"),
    [
        ("u8", "%r2", 0xAAAAAAAAAAAAAA21),
        ("s8", "%rd2", 0xAAAAAAAAAAAAAA89),
        ("b16", "%r2", 0xAAAAAAAAAAAA4321),
        ("u16", "%rd2", 0xAAAAAAAAAAAA6789),
        ("u32", "%rd2", 0xAAAAAAAA23456789),
    ],
)
def test_stores_take_the_low_bits(kind: str, register: str, left: int) -> None:
    out = np.array([0xAAAAAAAAAAAAAAAA], np.uint64)
    run_on(
        out,
        f"mov.u32 %r2, 0x87654321; mov.u64 %rd2, 0x0bcdef0123456789; st.global.{kind} [%rd1], {register};",
    )
    assert out[0] == left


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("threads", [1, 5, 32])
@pytest.mark.parametrize("step", [1, 3])
def test_vectors(count: int, threads: int, step: int) -> None:
    """Threads side by side, whose accesses are one stretch, and apart; words of 8, 16 and 32 bytes."""
    memory = np.arange(2 * step * count * threads + 8, dtype=np.uint32)
    begin = -memory.ctypes.data % 32 // 4
    out = memory[begin : begin + 2 * step * count * threads]
    names = [f"%r{i + 2}" for i in range(count)]
    before = out.copy()
    run_on(
        out,
        f"""
        mul.wide.u32 %rd2, %r1, {step * count * 4};
        add.s64 %rd3, %rd1, %rd2;
        ld.global.v{count}.u32 {{{", ".join(names)}}}, [%rd3];
        st.global.v{count}.u32 [%rd3+{step * count * threads * 4}], {{{", ".join(reversed(names))}}};
        """,
        threads=threads,
    )
    half = step * count * threads
    expected = before.copy()
    for thread in range(threads):
        at = thread * step * count
        expected[half + at : half + at + count] = before[at : at + count][::-1]
    assert out.tolist() == expected.tolist()


def test_a_vector_with_results_thrown_away() -> None:
    out = np.arange(8, dtype=np.uint32)[:4]
    run_on(out, "ld.global.v2.u32 {_, %r2}, [%rd1]; st.global.u32 [%rd1+8], %r2;")
    assert out.tolist() == [0, 1, 1, 3]


def test_signalling_nans_pass_through_loads_and_stores() -> None:
    out = np.array([0x7F800001, 0xFF812345, 0, 0], np.uint32)
    run_on(
        out, "ld.global.v2.f32 {%f1, %f2}, [%rd1]; mov.f32 %f3, %f1; st.global.v2.f32 [%rd1+8], {%f3, %f2};"
    )
    assert out.tolist() == [0x7F800001, 0xFF812345] * 2


def test_parameters_of_every_size() -> None:
    out = np.zeros(4, np.uint64)
    parameters = ".param .u64 out, .param .u8 a, .param .s16 b, .param .f32 c, .param .align 8 .b8 d[16]"
    text = kernel_of(
        START
        + """
        ld.param.u8 %rs1, [a]; ld.param.s16 %r2, [b]; ld.param.f32 %f1, [c];
        ld.param.v2.u32 {%r3, %r4}, [d+8];
        cvt.u64.u16 %rd2, %rs1; cvt.s64.s32 %rd3, %r2; mov.b32 %r5, %f1; cvt.u64.u32 %rd4, %r5;
        mov.b64 %rd5, {%r4, %r3};
        st.global.u64 [%rd1], %rd2; st.global.u64 [%rd1+8], %rd3; st.global.u64 [%rd1+16], %rd4;
        st.global.u64 [%rd1+24], %rd5; ret;
        """,
        parameters,
    )
    struct = np.array([(1, 2, 3, 4)], np.dtype([(n, "u4") for n in "abcd"]))
    execute(text, out, np.uint8(200), np.int16(-3), np.float32(1.5), struct[0], threads=1)
    assert out.tolist() == [200, 2**64 - 3, 0x3FC00000, (3 << 32) + 4]


@pytest.mark.parametrize(
    "statement",
    [
        "ld.param.u64 %rd2, [nothing];",
        "ld.param.u64 %rd2, [out+4];",
        "ld.param.u64 %rd2, [out+8];",
        "ld.param.u64 %rd2, [%rd1];",
        "ld.global.pred %p1, [%rd1];",
        "ld.global.u32 %rs1, [%rd1];",
        "ld.global.v2.u32 %r2, [%rd1];",
        "ld.global.v4.u32 {%r2, %r3}, [%rd1];",
        "ld.global.v8.u64 {%rd2, %rd3, %rd4, %rd5, %rd6, %rd7, %rd8, %rd9}, [%rd1];",
        "ld.global.surprise.u32 %r2, [%rd1];",
        "ld.global.L2::cache_hint.u32 %r2, [%rd1], %rd2;",
        "ld.global.u32 %r2, [%r1];",
        "ld.global.u32 %r2, [16];",
        "ld.shared::cluster.u32 %r2, [%rd1];",
        "st.const.u32 [%rd1], %r1;",
        "st.param.u32 [out], %r1;",
        "st.global.u32 [%rd1], %p1;",
        "st.global.u32 [%rd1], %rs1;",
        "st.global.u32 [%rd1];",
        "atom.global.add.u16 %rs1, [%rd1], %rs2;",
        "atom.global.add.b32 %r2, [%rd1], %r1;",
        "atom.global.cas.b32 %r2, [%rd1], %r1;",
        "atom.global.add.noftz.f16x2 %r2, [%rd1], %r1;",
        "atom.local.add.u32 %r2, [%rd1], %r1;",
        "red.global.nothing.u32 [%rd1], %r1;",
        "cvta.to.param.u64 %rd2, %rd1;",
        "cvta.to.shared.u32 %r2, %r1;",
        "isspacep.param %p1, %rd1;",
        "fence.proxy.async;",
        "membar.world;",
        "prefetch.global.L2 [%rd1];",
        "cp.async.ca.shared.global [%rd1], [%rd2], 16;",
        "mov.u32 %r2, %clock;",
        "mov.u32 %r2, %smid;",
        "mov.u32 %r2, %made_up;",
        "mov.u64 %rd2, nowhere;",
        "bar.arrive 0, 64;",
        "bar.sync 0, 64;",
        "barrier.cluster.arrive;",
        "bar.red.popc.u32 %r2, 0, %p1;",
    ],
)
def test_what_is_not_known_is_refused_before_anything_runs(statement: str) -> None:
    with pytest.raises(PtxError) as refused:
        program_of(kernel_of(START + "\n" + statement + "\nret;"))
    assert refused.value.text.strip().rstrip(";") in statement
    assert refused.value.line > 0


class TestStateSpaces:
    def test_windows(self) -> None:
        """Generic addresses reach each space; what isn't in one, is told."""
        out = np.zeros(12, np.uint32)
        body = """
            mov.u32 %r2, box; st.shared.u32 [%r2+4], 55;
            mov.u64 %rd2, box; cvta.shared.u64 %rd3, %rd2; ld.u32 %r3, [%rd3+4];
            mov.u64 %rd4, desk; cvta.local.u64 %rd5, %rd4; st.u32 [%rd5], 66; ld.local.u32 %r4, [desk];
            cvta.global.u64 %rd6, %rd1; st.u32 [%rd6], %r3; st.u32 [%rd6+4], %r4;
            cvta.to.shared.u64 %rd7, %rd3; ld.shared.u32 %r5, [%rd7+4]; st.global.u32 [%rd1+8], %r5;
            isspacep.shared %p1, %rd3; selp.u32 %r6, 1, 0, %p1; st.global.u32 [%rd1+12], %r6;
            isspacep.global %p1, %rd3; selp.u32 %r6, 1, 0, %p1; st.global.u32 [%rd1+16], %r6;
            isspacep.local %p1, %rd5; selp.u32 %r6, 1, 0, %p1; st.global.u32 [%rd1+20], %r6;
            isspacep.global %p1, %rd1; selp.u32 %r6, 1, 0, %p1; st.global.u32 [%rd1+24], %r6;
        """
        declared = ".shared .align 4 .b8 box[8]; .local .align 4 .b8 desk[4];"
        run_on(out, declared + body)
        assert out[:7].tolist() == [55, 66, 55, 1, 0, 1, 1]
        fault = fault_of(lambda: run_on(out, declared + body.replace("[%rd3+4]", "[%rd3+8]")))
        assert "right behind the end of shared variable box (8 bytes" in str(fault)
        fault = fault_of(lambda: run_on(out, declared + body.replace("[%rd5]", "[%rd5+2]")))
        assert "of which 2 lie behind the end of local variable desk" in str(fault)

    def test_threads_whose_addresses_are_in_different_spaces(self) -> None:
        out = np.arange(64, dtype=np.uint32)
        body = """
            .shared .align 4 .b8 box[128];
            mov.u64 %rd2, box; cvta.shared.u64 %rd2, %rd2; cvta.global.u64 %rd3, %rd1;
            mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %rd2, %rd4; add.s64 %rd6, %rd3, %rd4;
            and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; selp.b64 %rd7, %rd5, %rd6, %p1;
            add.u32 %r3, %r1, 100; st.u32 [%rd7], %r3; ld.u32 %r4, [%rd7]; st.global.u32 [%rd6+128], %r4;
        """
        run_on(out, body, threads=32)
        assert out.tolist() == [100 + t if t % 2 else t for t in range(32)] + list(range(100, 132))
        # Thread 6 is the fourth of those that access shared memory.
        fault = fault_of(lambda: run_on(out, body.replace("box[128]", "box[24]"), threads=32))
        assert fault.thread == 6
        assert fault.buffer == "shared variable box"

    def test_addresses_wrap_around(self) -> None:
        out = np.array([7, 0], np.uint64)
        run_on(
            out,
            "add.s64 %rd2, %rd1, 16; ld.global.u64 %rd3, [%rd2+18446744073709551600]; "
            "st.global.u64 [%rd2+-8], %rd3;",
        )
        assert out.tolist() == [7, 7]

    def test_shared_memory_of_every_block_and_local_memory_of_every_thread(self) -> None:
        out = np.zeros(128, np.uint32)
        body = """
            .shared .align 4 .b8 box[128]; .local .align 4 .b8 desk[4];
            mov.u32 %r2, %ctaid.x; mov.u32 %r9, box;
            mad.lo.u32 %r3, %r2, 32, %r1; st.local.u32 [desk], %r3;
            shl.b32 %r4, %r1, 2; add.u32 %r5, %r9, %r4; st.shared.u32 [%r5], %r3;
            bar.sync 0;
            ld.local.u32 %r6, [desk]; xor.b32 %r7, %r4, 124; add.u32 %r7, %r7, %r9; ld.shared.u32 %r8, [%r7];
            add.u32 %r6, %r6, %r8; mul.wide.u32 %rd2, %r3, 4; add.s64 %rd3, %rd1, %rd2;
            st.global.u32 [%rd3], %r6;
        """
        run_on(out, body, threads=32, blocks=4)
        assert out.tolist() == [2 * 32 * (i // 32) + 31 for i in range(128)]

    def test_what_was_never_written(self) -> None:
        out = np.zeros(4, np.uint32)
        for space in ("shared", "local"):
            body = f".{space} .align 4 .b8 box[8]; st.{space}.u16 [box+2], 7; ld.{space}.u32 %r2, [box];"
            fault = fault_of(lambda body=body: run_on(out, body))  # type: ignore[misc]
            assert f"reads 4 bytes of {space} variable box, from byte 0, which nothing has written" in str(
                fault
            )
            run_on(out, body.replace("ld.", f"st.{space}.u16 [box], 1; ld."))

    def test_constants(self) -> None:
        out = np.zeros(2, np.uint32)
        table = ".const .align 4 .b32 table[3] = {5, 6, 7};"
        body = "ld.const.u32 %r2, [table+4]; mov.u64 %rd2, table; ld.const.u32 %r3, [%rd2+8];"
        run_on(out, body + "st.global.v2.u32 [%rd1], {%r2, %r3};", before=table)
        assert out.tolist() == [6, 7]
        fault = fault_of(lambda: run_on(out, "mov.u64 %rd2, table; st.global.u32 [%rd2], %r1;", before=table))
        assert "const variable table, from byte 0, which is only to be read" in str(fault)
        fault = fault_of(lambda: run_on(out, "ld.const.u32 %r2, [table+12];", before=table))
        assert fault.buffer == "const variable table"

    def test_the_null_pointer(self) -> None:
        out = np.zeros(2, np.uint32)
        for statement in (
            "mov.u64 %rd2, 0; ld.global.u32 %r2, [%rd2];",
            "mov.u32 %r3, 0; ld.shared.u32 %r2, [%r3];",
        ):
            fault = fault_of(lambda statement=statement: run_on(out, statement))  # type: ignore[misc]
            assert "at 0x0" in str(fault)
        fault = fault_of(lambda: run_on(out, "mov.u64 %rd2, -8; st.u32 [%rd2], 1;"))
        assert "writes 4 bytes at 0xfffffffffffffff8" in str(fault)


class TestAtomics:
    @pytest.mark.parametrize(
        ("operation", "start", "operand", "left"),
        [
            ("add.u32", 0xFFFFFFFF, "3", 2),
            ("add.s32", 5, "-7", 0xFFFFFFFE),
            ("min.s32", 5, "-7", 0xFFFFFFF9),
            ("min.u32", 5, "0xfffffff9", 5),
            ("max.s32", 5, "-7", 5),
            ("max.u32", 5, "0xfffffff9", 0xFFFFFFF9),
            ("and.b32", 12, "10", 8),
            ("or.b32", 12, "10", 14),
            ("xor.b32", 12, "10", 6),
            ("exch.b32", 12, "10", 10),
            ("inc.u32", 9, "9", 0),
            ("inc.u32", 8, "9", 9),
            ("inc.u32", 12, "9", 0),
            ("dec.u32", 0, "9", 9),
            ("dec.u32", 4, "9", 3),
            ("dec.u32", 12, "9", 9),
            ("cas.b32", 12, "12, 99", 99),
            ("cas.b32", 12, "13, 99", 12),
        ],
    )
    def test_integers(self, operation: str, start: int, operand: str, left: int) -> None:
        out = np.array([start, 0], np.uint32)
        run_on(
            out, f"atom.global.relaxed.gpu.{operation} %r2, [%rd1], {operand}; st.global.u32 [%rd1+4], %r2;"
        )
        assert out.tolist() == [left, start]

    def test_64_bits_and_no_result(self) -> None:
        out = np.array([2**63, 7], np.uint64)
        run_on(
            out, "red.global.add.u64 [%rd1], 5; atom.max.s64 %rd2, [%rd1], 6; st.global.u64 [%rd1+8], %rd2;"
        )
        assert out.tolist() == [6, 2**63 + 5]

    def test_many_threads_on_few_places_take_turns(self) -> None:
        out = np.zeros(64 + 3, np.uint32)
        body = """
            rem.u32 %r2, %r1, 3; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd3, %rd1, %rd2;
            atom.global.OPERATION %r3, [%rd3], 1000;
        """
        run_on(out, body.replace("OPERATION", "add.u32"), threads=64)
        assert out[:3].tolist() == [22000, 21000, 21000]
        run_on(out, body.replace("OPERATION", "inc.u32"), threads=64)
        assert out[:3].tolist() == [21, 20, 20]

    def test_float32_sums_flush_subnormals_in_global_memory_only(self) -> None:
        out = np.array([0x00000001, 0, 0x3F800000, 0x80000003], np.uint32)
        body = """
            red.global.add.f32 [%rd1], 0f00000005; red.global.add.f32 [%rd1+8], 0f3F800000;
            red.global.add.f32 [%rd1+12], 0f80000000;
            .shared .align 4 .b8 box[4]; st.shared.u32 [box], 3; red.shared.add.f32 [box], 0f00000004;
            ld.shared.u32 %r2, [box]; st.global.u32 [%rd1+4], %r2;
        """
        run_on(out, body)
        assert out.tolist() == [0, 7, 0x40000000, 0x80000000]

    def test_float64_sums(self) -> None:
        out = np.array([1.0, 0.0])
        run_on(out, "mov.f64 %fd1, 0d3CA0000000000000; red.global.add.f64 [%rd1], %fd1;", threads=1)
        assert out[0] == 1.0
        run_on(out, "mov.f64 %fd1, 0d3CB0000000000001; red.global.add.f64 [%rd1], %fd1;", threads=3)
        assert out[0] == 1.0 + 3 * 2.0**-52

    def test_volatile_accesses_do_not_race_and_plain_ones_do(self) -> None:
        out = np.zeros(1, np.uint32)
        body = """
            st.volatile.global.u32 [%rd1], 1; ld.relaxed.gpu.global.u32 %r2, [%rd1];
            red.global.add.u32 [%rd1], 0;
        """
        run_on(out, body, threads=32, blocks=2)
        assert out[0] == 1
        fault = fault_of(lambda: run_on(out, body.replace("ld.relaxed.gpu", "ld"), threads=32, blocks=2))
        assert "with no barrier between them" in str(fault)


def test_addresses_keep_what_they_are_modulo_256() -> None:
    memory = np.zeros(400, np.uint8)
    for offset in (0, 1, 77):
        begin = -memory.ctypes.data % 256 + offset
        out = memory[begin : begin + 64]
        text = kernel_of(
            START + "and.b64 %rd2, %rd1, 255; ld.global.u8 %rs1, [%rd1]; st.global.u8 [%rd1+1], %rd2; ret;"
        )
        execute(text, out, threads=1)
        assert out[1] == offset % 256
