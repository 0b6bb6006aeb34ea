"""Instructions that compute something else than is written, and float64 where there should be none."""

from __future__ import annotations

import pytest

from solvergen.runtime.ptx.module import Place
from solvergen.verify.static.arithmetic import arithmetic_findings
from solvergen.verify.static.source import Line, Source
from tests.unit.verify.static.ptx import kernel

TEXT = """\
SG_FUNCTION double sg_bits(double x) { return x; }
SG_FUNCTION float sg_max(float a, float b) {
    return a > b ? a : b;
}
SG_FUNCTION double sg_pow64(double x) {
    const double k = x * 2.0;
    return k;
}
#if SG_PARAM == 1
SG_FUNCTION double sg_exp64(double x) {
    const double m = (double)1 + x;
    return m;
}
#else
SG_FUNCTION float sg_exp(float x) {
    return x + 3.0f;
}
#endif
template <int sg_n>
SG_FUNCTION void sg_update() {
    load();
    for (;;) {
        const float param = 1;

        // g = grad*scale      specs/some.yaml:20
        const float g = grad * scale;
        // v = g**p + 1e-3*g      specs/some.yaml:21
#if SG_OPTION_a
        const float v = (float)sg_pow64((double)g) + 0.001f * g;
#else
        const float v = sg_max(g, 0.001 * g);
#endif

        lanes[k] = v;
    }
    store();
}
"""
LINES = TEXT.split("\n")


def line(part: str) -> int:
    (number,) = [n for n, text in enumerate(LINES, start=1) if part in text]
    return number


def checks(instruction: str, *, at: int = 0, calls: str = "", float64: bool = False) -> list[str]:
    located = f".loc 1 {at} 1{calls}\n" if at else ""
    found = arithmetic_findings(kernel(f"{located}{instruction}; ret;"), Source(TEXT), float64=float64)
    return [finding.check for finding in found]


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.rn.f32 %f1, %f2, %f3", []),
        ("sub.rn.f32 %f1, %f2, %f3", []),
        ("mul.rn.f32 %f1, %f2, %f3", []),
        ("div.rn.f32 %f1, %f2, %f3", []),
        ("sqrt.rn.f32 %f1, %f2", []),
        ("rcp.rn.f32 %f1, %f2", []),
        ("max.f32 %f1, %f2, %f3", []),
        ("cvt.rmi.f32.f32 %f1, %f2", []),
        ("mad.lo.s32 %r1, %r2, %r3, %r4", []),
        ("add.s32 %r1, %r2, %r3", []),
        ("mul.wide.s32 %rd1, %r2, 4", []),
        ("setp.gt.f32 %p1, %f1, %f2", []),
        ("add.f32 %f1, %f2, %f3", ["contraction"]),
        ("mul.f32 %f1, %f2, %f3", ["contraction"]),
        ("fma.rn.f32 %f1, %f2, %f3, %f4", ["contraction"]),
        ("mad.rn.f32 %f1, %f2, %f3, %f4", ["contraction"]),
        ("mad.f32 %f1, %f2, %f3, %f4", ["contraction"]),
        ("fma.rn.ftz.f32 %f1, %f2, %f3, %f4", ["flush to zero", "contraction"]),
        ("add.rn.ftz.f32 %f1, %f2, %f3", ["flush to zero"]),
        ("setp.gt.ftz.f32 %p1, %f1, %f2", ["flush to zero"]),
        ("cvt.ftz.f64.f32 %fd1, %f1", ["flush to zero"]),
        ("div.approx.f32 %f1, %f2, %f3", ["approximation"]),
        ("div.full.f32 %f1, %f2, %f3", ["approximation"]),
        ("sqrt.approx.ftz.f32 %f1, %f2", ["approximation", "flush to zero"]),
        ("rsqrt.approx.f32 %f1, %f2", ["approximation"]),
        ("ex2.approx.ftz.f32 %f1, %f2", ["approximation", "flush to zero"]),
        ("tanh.approx.f32 %f1, %f2", ["approximation"]),
        ("add.rz.f32 %f1, %f2, %f3", ["rounding"]),
        ("div.rm.f32 %f1, %f2, %f3", ["rounding"]),
        ("sqrt.rp.f32 %f1, %f2", ["rounding"]),
        ("add.f16 %rs1, %rs2, %rs3", ["narrow arithmetic"]),
        ("fma.rn.bf16x2 %r1, %r2, %r3, %r4", ["contraction"]),
        ("mul.rn.f32x2 %rd1, %rd2, %rd3", []),
        ("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4", ["contraction"]),
    ],
)
def test_one_instruction(instruction: str, expected: list[str]) -> None:
    assert checks(instruction, float64=True) == expected


class TestFloat64:
    PRODUCT = "mul.rn.f64 %fd1, %fd2, %fd3"
    WIDEN = "cvt.f64.f32 %fd1, %f1"

    def test_is_wrong_where_the_language_has_float32(self) -> None:
        for at in (line("0.001 * g"), line("= grad * scale"), line("a > b"), line("x + 3.0f")):
            assert checks(self.PRODUCT, at=at) == ["float64"]

    def test_functions_of_float64_elements_are_no_excuse(self) -> None:
        assert checks(self.PRODUCT, at=line("(double)1 + x")) == ["float64"]

    def test_is_right_within_the_functions_that_have_it(self) -> None:
        for at in (line("x * 2.0"), line("return k;"), line("double sg_bits")):
            assert checks(self.PRODUCT, at=at) == []

    def test_is_right_in_what_such_a_function_calls(self) -> None:
        calls = f", function_name a, inlined_at 1 {line('x * 2.0')} 1"
        assert checks(self.PRODUCT, at=line("a > b"), calls=calls) == []

    def test_conversions_and_comparisons_stand_anywhere_if_one_is_called(self) -> None:
        at = line("(float)sg_pow64((double)g)")
        assert checks(self.WIDEN, at=at) == []
        assert checks("cvt.rn.f32.f64 %f1, %fd1", at=at) == []
        assert checks(self.PRODUCT, at=at) == ["float64"]
        for instruction in (self.WIDEN, "setp.neu.f64 %p1, %fd1, %fd2"):
            assert checks(instruction, at=line("= grad * scale")) == []
            without = Source(TEXT.replace("(float)sg_pow64((double)g)", "g"))
            located = kernel(f".loc 1 {line('= grad * scale')} 1\n{instruction}; ret;")
            found = arithmetic_findings(located, without, float64=False)
            assert [finding.check for finding in found] == ["float64"]

    def test_is_everywhere_if_elements_are_float64(self) -> None:
        assert checks(self.PRODUCT, at=line("= grad * scale"), float64=True) == []

    def test_moving_computes_nothing(self) -> None:
        for instruction in ("mov.f64 %fd1, 0d0000000000000000", "selp.f64 %fd1, %fd2, %fd3, %p1"):
            assert checks(instruction, at=line("= grad * scale")) == []

    def test_without_a_line_only_the_text_says(self) -> None:
        assert checks(self.PRODUCT) == []
        for text in ("int x;", LINES[0]):
            found = arithmetic_findings(kernel(f"{self.PRODUCT}; ret;"), Source(text), float64=False)
            assert [finding.check for finding in found] == ["float64"]


class TestWhereItComesFrom:
    def test_a_finding_names_line_text_and_equation(self) -> None:
        body = f"\n.loc 1 {line('= grad * scale')} 1\nfma.rn.f32 %f1, %f2, %f3, %f4;\nret;"
        (finding,) = arithmetic_findings(kernel(body), Source(TEXT), float64=False)
        assert str(finding) == (
            "contraction: fma.rn.f32 rounds a product and a sum once instead of twice\n"
            "  line 8: fma.rn.f32 %f1, %f2, %f3, %f4;\n"
            "  kernel.cu:26: const float g = grad * scale;\n"
            "  equation g = grad*scale  (specs/some.yaml:20)"
        )
        assert finding.as_json()["equation"] == "g = grad*scale  (specs/some.yaml:20)"

    def test_of_an_inlined_function_it_is_the_equation_that_calls_it(self) -> None:
        place = Place(1, "", line("a > b"), (line("sg_max(g, 0.001"), 40))
        found = Source(TEXT).at(place)
        assert found == Line(
            "kernel.cu",
            line("sg_max(g, 0.001"),
            LINES[line("sg_max(g, 0.001") - 1],
            "v = g**p + 1e-3*g  (specs/some.yaml:21)",
        )

    @pytest.mark.parametrize("part", ["load();", "store();", "lanes[k] = v", "const float param", "a > b"])
    def test_other_lines_have_no_equation(self, part: str) -> None:
        found = Source(TEXT).at(Place(1, "", line(part)))
        assert found is not None
        assert (found.number, found.equation) == (line(part), "")

    @pytest.mark.parametrize("number", [0, len(LINES) + 1])
    def test_no_line_at_all(self, number: int) -> None:
        assert Source(TEXT).at(Place(1, "", number)) is None
