"""Native kernels that aren't vectorised, contract, or call a library."""

from __future__ import annotations

import pytest

from solvergen.runtime.native.inspection import assembly
from solvergen.verify.static.cpu import NativeMeasured, measure_native, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

KERNEL = """\
static __attribute__((noinline)) void sg_run(float *restrict x, const float *restrict y, long n) {
    for (long i = 0; i < n; ++i) {
        // x = x*y + 1      specs/some.yaml:9
        x[i] = x[i] * y[i] + 1.0f;
    }
}
void sg_kernel(float *x, const float *y, long n) { sg_run(x, y, n); }
"""


def measured(text: str) -> NativeMeasured:
    return measure_native(assembly(text, lines=True), text)


def test_a_kernel_as_it_should_be() -> None:
    found = measured(KERNEL)
    assert found.findings == ()
    assert found.packed >= 2
    assert found.fused == 0


def test_a_chain_from_one_element_to_the_next() -> None:
    text = KERNEL.replace("x[i] = x[i] * y[i] + 1.0f", "x[i + 1] = x[i] * y[i] + 1.0f")
    (finding,) = measured(text).findings
    assert finding.check == "not vectorised"
    assert "the main loop works on one element at a time: " in finding.message
    assert finding.source is not None
    assert (finding.source.number, finding.source.equation) == (4, "x = x*y + 1  (specs/some.yaml:9)")


def test_no_loop() -> None:
    (finding,) = measured("void sg_run(float *x) { x[0] = x[0] * x[1] + x[2]; }").findings
    assert finding.check == "not vectorised"


def test_each_pass_is_looked_at() -> None:
    two = KERNEL.replace("sg_run", "sg_run_0").replace("sg_kernel", "sg_pass_0")
    idle = "static __attribute__((noinline)) void sg_run_2(float *x, long n) { (void)x, (void)n; }\n"
    second = KERNEL.replace("sg_run", "sg_run_1").replace("sg_kernel", "sg_pass_1")
    assert measured(two + second + idle).findings == ()
    (finding,) = measured(two + second.replace("x[i] = x[i]", "x[i + 1] = x[i]") + idle).findings
    assert finding.check == "not vectorised"
    (finding,) = measured(two.replace("x[i] = x[i]", "x[i + 1] = x[i]") + second).findings
    assert finding.check == "not vectorised"
    calling = "float unknown(float);\n" + two + second.replace("+ 1.0f", "+ unknown(y[i])")
    assert "library call" in {finding.check for finding in measured(calling).findings}


def test_contraction() -> None:
    text = KERNEL.replace("x[i] * y[i] + 1.0f", "__builtin_fmaf(x[i], y[i], 1.0f)")
    findings = measured(text).findings
    if "fma" not in assembly(text):
        pytest.skip("this processor has no fused operation")
    contracted = [f for f in findings if f.check == "contraction"]
    calls = [f for f in findings if f.check == "library call"]  # where it isn't one instruction
    assert contracted or calls
    for finding in (*contracted, *calls):
        assert finding.line > 0
        assert finding.source is not None
        assert finding.source.number == 4


def test_a_library_call() -> None:
    text = "float expf(float);\n" + KERNEL.replace("+ 1.0f", "+ expf(y[i])")
    findings = measured(text).findings
    assert [f.check for f in findings if f.check != "not vectorised"] == ["library call"] * len(
        [f for f in findings if f.check != "not vectorised"]
    )
    call = next(f for f in findings if f.check == "library call")
    assert "expf" in call.text
    assert call.source is not None
    assert call.source.number == 5


def test_a_loop_that_copies_may_be_a_call() -> None:
    text = KERNEL.replace("float *restrict x,", "float *restrict x, float *restrict z,")
    text = text.replace("{ sg_run(x, y, n); }", "{ sg_run(x, x + n, y, n); }")
    text = text.replace("        // x =", "        z[i] = y[i];\n        // x =")
    assert measured(text).findings == ()
    copying = "void *memcpy(void *, const void *, unsigned long);\n" + text.replace(
        "    for (", "    memcpy(z, y, (unsigned long)n * 4);\n    for (", 1
    )
    assert measured(copying).findings == ()
