"""PTX text -> frozen data, by hand-written PTX: every kind of operand, declaration and mistake."""

from __future__ import annotations

import contextlib
import struct
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.errors import PtxError
from solvergen.runtime.ptx.module import (
    Address,
    Float,
    Guard,
    Instruction,
    Integer,
    Kernel,
    Not,
    Operand,
    Pair,
    Parameter,
    Register,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
)
from solvergen.runtime.ptx.text import parse
from solvergen.runtime.ptx.types import TYPES

HEAD = ".version 8.8\n.target sm_90\n.address_size 64\n"


def kernel(body: str, *, parameters: str = "", before: str = "", limits: str = "") -> Kernel:
    """The kernel with this body; its first line is line 5 of the text if nothing stands before."""
    text = f"{HEAD}{before}.visible .entry k({parameters}) {limits}{{\n{body}\n}}\n"
    return parse(text).kernels["k"]


REGISTERS = ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n.reg .f32 %f<8>;\n"


def operands(written: str) -> tuple[Operand, ...]:
    """The operands of one instruction, between many declared registers."""
    before = ".global .align 4 .b8 table[64];\n"
    return kernel(f"{REGISTERS}L: op.x {written};", before=before).instructions[0].operands


class TestModules:
    def test_version_target_and_kernels(self) -> None:
        module = parse(f"{HEAD}.entry a() {{ ret; }}\n.visible .entry b\n{{ exit;\n}}\n\0")
        assert (module.version, module.target) == ((8, 8), "sm_90")
        assert list(module.kernels) == ["a", "b"]
        assert [i.name for k in module.kernels.values() for i in k.instructions] == ["ret", "exit"]

    def test_comments_strings_and_sections_are_no_code(self) -> None:
        text = (
            '// .entry no() {\n.file 1 "/a//b/*c.cu"\n'
            '.section .debug_str\n{\ninfo: .b8 95,90\n.b8 0\n}\n.pragma "nounroll";\n'
        )
        body = 'ret; // exit; }\n/* trap;\n exit; */ .pragma "a;b//c"; exit;'
        found = parse(f"{HEAD}{text}.entry k() {{ {body} }}").kernels["k"].instructions
        assert [(i.name, i.place.line) for i in found] == [("ret", 12), ("exit", 14)]

    def test_nothing_but_ptx(self) -> None:
        for text in ("", "\n\n", ".version 8.8\n", ".target sm_90\n"):
            with pytest.raises(PtxError, match="this is no PTX"):
                parse(text)


class TestKernels:
    def test_parameters_are_laid_out_in_order_and_aligned(self) -> None:
        declared = """
            .param .u8 a, .param .u64 .ptr .global .align 16 b,
            .param .align 8 .b8 c[20], .param .u16 d, .param .f32 e, .param .v2 .f32 f[3]"""
        assert kernel("ret;", parameters=declared).parameters == (
            Parameter("a", TYPES["u8"], 0, 1),
            Parameter("b", TYPES["u64"], 8, 8),
            Parameter("c", TYPES["b8"], 16, 20),
            Parameter("d", TYPES["u16"], 36, 2),
            Parameter("e", TYPES["f32"], 40, 4),
            Parameter("f", TYPES["f32"], 48, 24),
        )

    @pytest.mark.parametrize(
        ("limits", "most", "required"),
        [
            ("", None, None),
            (".maxntid 256\n", (256, 1, 1), None),
            (".maxntid 8, 4, 2\n.minnctapersm 4\n.maxnreg 64\n", (8, 4, 2), None),
            (".reqntid 32,2 .maxnctapersm 3\n", None, (32, 2, 1)),
            ('.pragma "a{b";\n.maxntid 7,1,1\n', (7, 1, 1), None),
        ],
    )
    def test_limits(
        self, limits: str, most: tuple[int, int, int] | None, required: tuple[int, int, int] | None
    ) -> None:
        found = kernel("ret;", limits=limits)
        assert (found.max_threads, found.required_threads) == (most, required)

    def test_registers_get_dense_slots_as_they_are_used(self) -> None:
        found = kernel(
            ".reg .f64 %fd<500>, %x;\n.reg .pred %p<2>;\n"
            "add.f64 %fd499, %x, %fd7;\n@%p1 mov.f64 %fd7, %fd499;"
        )
        assert found.registers == (
            Register("%fd499", TYPES["f64"], 0),
            Register("%x", TYPES["f64"], 1),
            Register("%fd7", TYPES["f64"], 2),
            Register("%p1", TYPES["pred"], 3),
        )

    def test_ranges_whose_names_continue_each_other(self) -> None:
        found = kernel(".reg .b32 %r<8>;\n.reg .b64 %r1<5>;\nop %r1, %r10, %r14;")
        assert [str(r.type) for r in found.registers] == [".b32", ".b64", ".b64"]

    def test_an_instruction(self) -> None:
        found = kernel(
            f"{REGISTERS}\n  @!%p2\tld.global.nc.L1::no_allocate.v2.f32 \t{{%f1,%f2}} , [ %rd3+-8 ] ;"
        )
        (instruction,) = found.instructions
        assert instruction.opcode == "ld"
        assert instruction.modifiers == ("global", "nc", "L1::no_allocate", "v2", "f32")
        assert instruction.name == "ld.global.nc.L1::no_allocate.v2.f32"
        p, f1, f2, rd = found.registers
        assert (p.name, f1.name, f2.name, rd.name) == ("%p2", "%f1", "%f2", "%rd3")
        assert instruction.guard == Guard(p, negated=True)
        assert instruction.operands == (Vector((f1, f2)), Address(rd, -8))
        assert instruction.place.line == 10
        assert instruction.place.text == (
            "@!%p2 ld.global.nc.L1::no_allocate.v2.f32 {%f1,%f2} , [ %rd3+-8 ] ;"
        )

    def test_several_statements_on_a_line_and_one_over_several(self) -> None:
        found = kernel(f"{REGISTERS}bar.sync 0; add.s32 %r1,\n %r2,\n 7; L: ret;")
        assert [(i.name, i.place.line) for i in found.instructions] == [
            ("bar.sync", 9),
            ("add.s32", 9),
            ("ret", 11),
        ]
        assert found.labels == {"L": 2}
        assert found.instructions[1].operands[2] == Integer(7)

    def test_labels(self) -> None:
        found = kernel(f"{REGISTERS}$L__A:\n@%p1 bra $L__B;\n_x: bra.uni $L__A;\n$L__B:\n%w :\n")
        assert found.labels == {"$L__A": 0, "_x": 1, "$L__B": 2, "%w": 2}
        assert [i.operands for i in found.instructions] == [(Symbol("$L__B"),), (Symbol("$L__A"),)]


class TestOperands:
    @pytest.mark.parametrize(
        ("written", "value"),
        [
            ("0", 0),
            ("00", 0),
            ("-1", -1),
            ("42U", 42),
            ("0x1F", 31),
            ("0XfFU", 255),
            ("-0x10", -16),
            ("012", 10),
            ("-07U", -7),
            ("0b101", 5),
            ("0B11U", 3),
            ("18446744073709551615", 2**64 - 1),
            ("0xFFFFFFFFFFFFFFFF", 2**64 - 1),
            ("-9223372036854775808", -(2**63)),
            ("WARP_SZ", 32),
        ],
    )
    def test_integers(self, written: str, value: int) -> None:
        assert operands(written) == (Integer(value),)

    @pytest.mark.parametrize(
        ("written", "bits", "width"),
        [
            ("0f3F800000", 0x3F800000, 32),
            ("0F80000000", 0x80000000, 32),
            ("0fffc00001", 0xFFC00001, 32),
            ("-0f3F800000", 0xBF800000, 32),
            ("0d3FF0000000000000", 0x3FF0 << 48, 64),
            ("0D7ff8000000000001", 0x7FF8000000000001, 64),
            ("1.5", 0x3FF8 << 48, 64),
            ("-2.", 0xC000 << 48, 64),
            (".25e1", 0x4004 << 48, 64),
            ("1e-8", int.from_bytes(struct.pack("<d", 1e-8), "little"), 64),
        ],
    )
    def test_floats(self, written: str, bits: int, width: int) -> None:
        assert operands(written) == (Float(bits, width),)

    def test_every_kind(self) -> None:
        r1, r2 = (Register(f"%r{i}", TYPES["b32"], i - 1) for i in (1, 2))
        assert operands("%r1, %r2, %r1") == (r1, r2, r1)
        p1, p2 = (Register(f"%p{i}", TYPES["pred"], i - 1) for i in (1, 2))
        assert operands("%p1|%p2, !%p1, ! %p2") == (Pair(p1, p2), Not(p1), Not(p2))
        assert operands("_|%p1, %p1 | _, _") == (Pair(Sink(), p1), Pair(p1, Sink()), Sink())
        assert operands("{%r1, -3, 0f00000000, _, %tid.x,%r2}") == (
            Vector((r1, Integer(-3), Float(0, 32), Sink(), Special("%tid.x"), r2)),
        )
        assert operands("table, L") == (Symbol("table"), Symbol("L"))

    @pytest.mark.parametrize(
        ("written", "offset"),
        [("%rd0", 0), ("%rd0+8", 8), ("%rd0+-8", -8), ("%rd0-8", -8), (" %rd0 + 0x10 ", 16)],
    )
    def test_addresses_by_a_register(self, written: str, offset: int) -> None:
        assert operands(f"[{written}]") == (Address(Register("%rd0", TYPES["b64"], 0), offset),)

    def test_other_addresses(self) -> None:
        assert operands("[table], [table+4], [256]") == (
            Address(Symbol("table"), 0),
            Address(Symbol("table"), 4),
            Address(None, 256),
        )

    @pytest.mark.parametrize(
        "name",
        ["%tid.x", "%ntid.y", "%ctaid.z", "%nctaid.x", "%laneid", "%warpid", "%lanemask_lt", "%clock64"],
    )
    def test_special_registers(self, name: str) -> None:
        assert operands(name) == (Special(name),)

    @pytest.mark.parametrize(
        "written",
        [
            "%r9",
            "%r08",
            "%r",
            "%q1",
            "nowhere",
            "%tid",
            "%tid.w",
            "%r1.x",
            "09",
            "1x",
            "0x",
            "0f3F8000",
            "0d3FF0",
            "18446744073709551616",
            "-9223372036854775809",
            "%r1, , %r2",
            "%r1 %r2",
            ",",
            "%r1,",
            "{%r1, }",
            "{}",
            "{{%r1}}",
            "[%rd1",
            "[%rd1]]",
            "[%rd1+%rd2]",
            "[%rd1+0f00000000]",
            "[%rd9]",
            "[7+1]",
            "[%tid.x]",
            "[]",
            "!3",
            "!L",
            "!%r9",
            "%p1|%p2|%p3",
            "%p1|3",
            "(%r1)",
            '"x"',
            "table+4",
        ],
    )
    def test_what_is_none(self, written: str) -> None:
        with pytest.raises(PtxError, match=r"^PTX line 10: ") as raised:
            operands(written)
        assert raised.value.line == 10
        assert "op.x" in raised.value.text


class TestVariables:
    @pytest.mark.parametrize(
        ("declared", "expected"),
        [
            (".global .align 4 .u32 a;", Variable("a", "global", 4, 4, bytes(4))),
            (".visible .global .u16 a = 258;", Variable("a", "global", 2, 2, b"\2\1")),
            (".const .align 4 .b8 a[6] = {1, 255, -1};", Variable("a", "const", 4, 6, b"\1\xff\xff\0\0\0")),
            (
                ".global .f32 a[2] = {0f3F800000, -1.5};",
                Variable("a", "global", 4, 8, b"\0\0\x80?\0\0\xc0\xbf"),
            ),
            (".global .f64 a = 0f3F800000;", Variable("a", "global", 8, 8, struct.pack("<d", 1.0))),
            (
                ".global .v2 .s32 a[2] = {1,-1};",
                Variable("a", "global", 8, 16, b"\1\0\0\0" + b"\xff" * 4 + bytes(8)),
            ),
            (".const .b8 a[2][3];", Variable("a", "const", 1, 6, bytes(6))),
            (".shared .align 16 .b8 a[56];", Variable("a", "shared", 16, 56)),
            (".extern .shared .align 16 .b8 a[];", Variable("a", "shared", 16, 0)),
        ],
    )
    def test_outside_of_kernels(self, declared: str, expected: Variable) -> None:
        assert parse(f"{HEAD}{declared}\n").variables == (expected,)

    def test_within_kernels(self) -> None:
        found = kernel(
            ".local .align 16 .b8 \t__depot0[32];\n.shared .f32 s[4];\n.extern .shared .b8 d[];\n"
            ".reg .b64 %rd<2>;\nmov.u64 %rd1, __depot0;\nmov.u64 %rd1, s;"
        )
        assert found.variables == (
            Variable("__depot0", "local", 16, 32),
            Variable("s", "shared", 4, 16),
            Variable("d", "shared", 1, 0),
        )
        assert [i.operands[1] for i in found.instructions] == [Symbol("__depot0"), Symbol("s")]

    @pytest.mark.parametrize(
        "declared",
        [
            ".extern .global .u32 a;",
            ".extern .shared .b8 a[4];",
            ".global .b8 a[];",
            ".shared .u32 a = 1;",
            ".global .u32 a = 4294967296;",
            ".global .u8 a[2] = {1, 2, 3};",
            ".global .u8 a = -129;",
            ".global .u64 a = generic(b);",
            ".global .u32 a = 1.5;",
            ".global .f32 a = 1;",
            ".global .f32 a = 1e300;",
            ".global .f16 a = 1.0;",
            ".global .u32 a[2][2] = {{1,2},{3,4}};",
            ".global .b8 a[2] = {1,};",
            ".global .b8 a[2] = {1",
            ".global .pred a;",
            ".global .b128 a;",
            ".global .align 3 .u32 a;",
            ".global .align 2 .u32 a;",
            ".global .align 0 .u32 a;",
            ".global .b8 a[2000000000000000];",
            ".global .u32 a b;",
            ".global .u32 a; .const .u32 a;",
            ".global .texref a;",
        ],
    )
    def test_what_is_none(self, declared: str) -> None:
        with pytest.raises(PtxError, match=r"^PTX line 4: "):
            parse(f"{HEAD}{declared}\n")


class TestScopes:
    def test_inner_names_hide_outer_ones_until_the_brace(self) -> None:
        found = kernel(
            ".reg .b32 %r<3>, t;\n{ .reg .b64 t; mov.b64 t, 1;\n"
            "{ mov.b64 t, 2; .reg .f32 t; mov.f32 t, %r1; } }\n"
            "mov.b32 t, 4;"
        )
        assert [str(r.type) for r in found.registers] == [".b64", ".f32", ".b32", ".b32"]
        assert [i.operands[0].slot for i in found.instructions if isinstance(i.operands[0], Register)] == [
            0,
            0,
            1,
            3,
        ]

    def test_labels_and_variables_of_one_name_stay_apart(self) -> None:
        block = "{ .shared .b32 s; .reg .b32 a; L: mov.u32 a, s; bra M; bra L; M: }\n"
        found = kernel(f"s: L: M:\n{block}{block}bra L; bra M; bra s;")
        assert found.labels == {"s": 0, "L": 0, "M": 0, "L@2": 0, "M@2": 3, "L@3": 3, "M@3": 6}
        assert [v.name for v in found.variables] == ["s@2", "s@3"]
        assert [i.operands[-1] for i in found.instructions] == [
            *map(Symbol, ("s@2", "M@2", "L@2")),
            *map(Symbol, ("s@3", "M@3", "L@3")),
            *map(Symbol, ("L", "M", "s")),
        ]

    def test_a_kernels_variable_hides_the_modules(self) -> None:
        before = ".shared .b32 s;\n"
        found = kernel(".reg .b32 %r<2>; .shared .b32 s; mov.u32 %r1, s;", before=before)
        assert found.variables[0].name == "s@2"
        assert found.instructions[0].operands[1] == Symbol("s@2")

    def test_kernels_know_nothing_of_each_other(self) -> None:
        with pytest.raises(PtxError, match=r"^PTX line 5: .*%r1"):
            parse(
                f"{HEAD}.entry a() {{ .reg .b32 %r<2>; mov.b32 %r1, 1; }}\n.entry b() {{ mov.b32 %r1, 1; }}"
            )

    @pytest.mark.parametrize(
        "body",
        [
            "{ .reg .b32 a; }\nmov.b32 a, 1;",
            "{ L: }\nbra L;",
            "bra nowhere;\nL:",
        ],
    )
    def test_what_ends_with_its_brace(self, body: str) -> None:
        with pytest.raises(PtxError, match="neither declared"):
            kernel(body)


class TestLines:
    BODY = """.reg .b32 %r<2>;
        .loc 1 10 3
        mov.b32 %r1, 1;
    L:
        mov.b32 %r1, 2;
        .loc 1 20 5, function_name $L__info_string0, inlined_at 1 10 3
        mov.b32 %r1, 3;
        .loc 1 30 7, function_name $L__info_string1, inlined_at 1 20 5
        mov.b32 %r1, 4;
        .loc 1 0 7
        mov.b32 %r1, 5;
        .loc\t1 11 1
        { mov.b32 %r1, 6; }"""

    def test_source_lines(self) -> None:
        places = [i.place for i in kernel(f"nop;\n{self.BODY}").instructions]
        assert [(p.source, p.calls) for p in places] == [
            (0, ()),
            (10, ()),
            (10, ()),
            (20, (10,)),
            (30, (20, 10)),
            (0, ()),
            (11, ()),
        ]
        assert [p.inlined_at for p in places] == [0, 0, 0, 10, 10, 0, 0]
        assert [p.line for p in places] == [5, 8, 10, 12, 14, 16, 18]


class TestMistakes:
    @pytest.mark.parametrize(
        ("body", "line", "message"),
        [
            ("add.s32 %r1, %r1, %r1;", 5, "'%r1' is neither declared"),
            (".reg .b32 %r<2>;\nadd.s32 %r1, %r2;", 6, "'%r2' is neither declared"),
            (".reg .b32 a;\n.reg .b64 a;", 6, "a is declared a second time"),
            (".reg .b32 %r<9>;\n.reg .b64 %r8;", 6, "%r8 is declared a second time"),
            (".reg .b64 %r8;\n.reg .b32 %r<9>;", 6, "one of %r<9> is declared a second time"),
            (".reg .b64 %r1<3>;\n.reg .b32 %r<11>;", 6, "one of %r<11> is declared a second time"),
            (".reg .b64 %r<11>;\n.reg .b32 %r1<3>;", 6, "one of %r1<3> is declared a second time"),
            (".reg .b32 %r<3>, %r<3>;", 5, "one of %r<3> is declared a second time"),
            ("L:\nret;\nL:", 7, "L is declared a second time"),
            ("L:\n.reg .b32 L;", 6, "L is declared a second time"),
            (".reg .b128 %rq<2>;", 5, ".b128 is no type that solvergen knows"),
            (".reg .v4 .f32 %v;", 5, "this is no declaration of registers"),
            (".reg b32 %r;", 5, "this is no declaration of registers"),
            (".reg .b32 %r<-1>;", 5, "this is no declaration of registers"),
            ("@%p1 ret;", 5, "there is no register %p1"),
            ("\ncall.uni f, ();", 6, "calls aren't supported: mark the function __forceinline__"),
            ("{ call (r), f, (a);\n}", 5, "calls aren't supported"),
            (".reg .b32 %r1;\nT: .branchtargets T;\nbrx.idx %r1, T;", 6, ".branchtargets isn't supported"),
            ("T: brx.idx 3, T;", 5, "branches through a table"),
            ("tex.2d.v4.f32.s32 {a,b,c,d}, [t, {x,y}];", 5, "textures aren't supported"),
            (".callprototype ();", 5, ".callprototype isn't supported in a kernel"),
            (".extern .global .b32 a;", 5, "this is defined in another module"),
            (".loc 1 2", 5, "this is no .loc"),
            ("ret;\nret\n", 6, "no closing brace|no statement"),
            ("ret;\n= 3;", 6, "this is no statement of PTX"),
            ("Add.s32 1;", 5, "this is no statement of PTX"),
            ("@ret;", 5, "this is no statement of PTX"),
        ],
    )
    def test_in_a_kernel(self, body: str, line: int, message: str) -> None:
        with pytest.raises(PtxError, match=message) as raised:
            kernel(body)
        assert raised.value.line == line
        assert raised.value.text
        assert str(raised.value).startswith(f"PTX line {line}: ")

    @pytest.mark.parametrize(
        ("text", "line", "message"),
        [
            (".func f() { ret; }", 4, "functions aren't supported"),
            ("\n.visible .func (.param .b32 r) f() { ret; }", 5, "functions aren't supported"),
            (".extern .func (.param .b32 r) vprintf;", 4, "functions aren't supported"),
            (".address_size 32", 4, "addresses of 32 bits"),
            (".entry k() {\nret;\n", 4, "no closing brace"),
            (".entry k() {\n{ ret;\n}\n", 4, "no closing brace"),
            (".entry k() { }\n}", 5, "nothing that solvergen can read outside of a kernel"),
            (".entry k() {}\n.entry k() {}", 5, "two kernels k"),
            (".entry k(.param .u32 a, .param .u64 a) {}", 4, "a is declared a second time"),
            (".entry k(.reg .u32 a) {}", 4, "is no parameter"),
            (".entry k(.param .u32 a[]) {}", 4, "is no parameter of an entry"),
            (".entry k(.param .u32 a,) {}", 4, "is no parameter"),
            (".entry k() .explicitcluster {}", 4, ".explicitcluster"),
            (".entry k() .maxntid 1,2,3,4 {}", 4, ".maxntid 1,2,3,4"),
            (".entry k() .maxntid x {}", 4, ".maxntid x"),
            (".entry k();", 4, "can read outside of a kernel"),
            (".tex .u64 t;", 4, "can read outside of a kernel"),
            ("hello", 4, "can read outside of a kernel"),
            (".alias a, b;", 4, "can read outside of a kernel"),
        ],
    )
    def test_outside(self, text: str, line: int, message: str) -> None:
        with pytest.raises(PtxError, match=message) as raised:
            parse(f"{HEAD}{text}")
        assert raised.value.line == line
        assert (
            raised.value.text.strip()
            == text.strip("\n").split("\n")[max(0, line - 4 - text.startswith("\n"))]
        )


WHOLE = f"""{HEAD}
.global .align 4 .b8 table[8] = {{1, 2}};
.visible .entry k(.param .u64 a, .param .align 8 .b8 b[4])
.maxntid 256, 1, 1
{{
{REGISTERS}
.loc 1 2 3, function_name s, inlined_at 1 4 5
  @!%p1 ld.global.v2.f32 {{%f1, %f2}}, [%rd1+-8]; // here
L: {{ .reg .pred q; setp.lt.u32 q|_, %r1, 0x1F; @q bra L; }}
  mov.u64 %rd2, table;
}}
"""


class TestHostileText:
    @given(
        st.lists(
            st.tuples(
                st.integers(0, len(WHOLE)),
                st.integers(0, 4),
                st.text("{}[]()<>%@!;:,.\"'/*|+-_ \n\0aL019\u0661\u2028", max_size=4),
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_only_ptx_errors(self, edits: list[tuple[int, int, str]]) -> None:
        text = WHOLE
        for position, removed, added in edits:
            text = text[:position] + added + text[position + removed :]
        line = 0
        try:
            parse(text)
        except PtxError as refused:
            line = refused.line
        assert 0 <= line <= text.count("\n") + 1

    def test_a_billion_registers_cost_nothing(self) -> None:
        found = kernel(".reg .b32 %r<1000000000>;\nmov.b32 %r999999999, 1;")
        assert found.registers == (Register("%r999999999", TYPES["b32"], 0),)

    def test_time_grows_with_length_only(self) -> None:
        lines = [f"fma.rn.f32 %f{i % 7}, %f{i % 5}, %f{i % 3}, 0f{i:08X};" for i in range(6000)]
        text = f"{HEAD}.entry k() {{ {REGISTERS} " + "\n".join(lines) + "}"
        seconds = []
        for _ in range(3):  # the fastest: other work of the process, a collection of garbage say, isn't meant
            start = time.process_time()
            assert len(parse(text).kernels["k"].instructions) == 6000
            seconds.append(time.process_time() - start)
        assert min(seconds) < 1.0  # usually 0.1; what is quadratic takes many

    @pytest.mark.parametrize(
        "body",
        [
            "{" * 5000 + "}" * 5000,
            "ret" + " " * 20000 + ";",
            "mov.b32 " + "%r1," * 5000 + "%r1;",
            "a" * 50000,
        ],
    )
    def test_long_nonsense_is_refused_or_read_soon(self, body: str) -> None:
        seconds = []
        for _ in range(3):  # the fastest, as above
            start = time.process_time()
            with contextlib.suppress(PtxError):
                kernel(f"{REGISTERS}{body}")
            seconds.append(time.process_time() - start)
        assert min(seconds) < 5.0  # usually 0.1; what is quadratic takes many


def test_instructions_are_plain_values() -> None:
    (one,) = kernel("ret;").instructions
    (other,) = kernel("ret;").instructions
    assert one == other
    assert isinstance(one, Instruction)
    assert hash(one) == hash(other)
