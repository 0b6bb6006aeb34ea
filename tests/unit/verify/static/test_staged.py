"""Kernels with several entry points: a row for each pass and stage, and what is wrong in one is found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solvergen.errors import StaticError
from solvergen.runtime.cuda import nvrtc
from solvergen.verify.static import StaticReport, check_static, static_report
from solvergen.verify.static.flow import Flow
from tests.support.staged_rule import text_of, weigher, with_text
from tests.unit.verify.static.ptx import POINTERS, kernel, loop

needs_nvrtc = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
FLOAT32 = (("float32", "float32"),)


@needs_nvrtc
def test_a_row_for_each_kernel() -> None:
    report = check_static(
        weigher(), capabilities=[90], dtypes=[*FLOAT32, ("bfloat16", "float32")], parts=["cuda"]
    )
    rows = [row for row in report.rows if row.chosen == "bounded+weigh" and row.dtypes == "float32"]
    assert [row.kernel for row in rows] == ["sg_pass_0", "sg_stage_1", "sg_pass_1", "sg_stage_2", "sg_pass_2"]
    assert str(rows[1]) == "weigher (bounded+weigh) float32 sm_90 sg_stage_1"
    unbounded = [row for row in report.rows if row.chosen == "weigh" and row.dtypes == "float32"]
    assert [row.kernel for row in unbounded] == ["sg_stage_1", "sg_pass_1", "sg_stage_2", "sg_pass_2"]
    data = json.loads(json.dumps(report.as_json(), allow_nan=False))["rows"]
    bounded = [row for row, of in zip(data, report.rows, strict=True) if of in rows]
    assert [row["width"] for row in bounded] == [128, 0, 128, 0, 128]
    assert [row["loads_needed"] for row in bounded] == [1, 0, 3, 0, 2]
    assert [row["loads_per_element"] for row in bounded] == [1.0, 0.0, 3.0, 0.0, 2.0]
    assert [row["stores_per_element"] for row in bounded] == [0.0, 0.0, 1.0, 0.0, 1.0]
    assert [row["shared"] > 0 for row in bounded] == [True, False, True, False, False]


@needs_nvrtc
@pytest.mark.parametrize("number", [75, 80, 100, 120])
def test_every_capability(number: int) -> None:
    for compiler in nvrtc.installed():
        check_static(weigher(), capabilities=[number], dtypes=FLOAT32, parts=["cuda"], compiler=compiler)


def _stage(text: str, right: str, wrong: str) -> str:
    """A change in stages only."""
    begin = text.index("/* ---- Stage")
    return text[:begin] + text[begin:].replace(right, wrong)


FAULTS = {
    "a buffer is read that the pass doesn't need": (
        "sg_pass_2",
        {"traffic"},
        lambda text: text.replace(
            "    sg_store(sg_at.sg_param_at + sg_first, sg_lanes_param);",
            "    if (sg_lanes_param[0] == ((const volatile sg_param *)sg_at.sg_param_at)[sg_first]) return;\n"
            "    sg_store(sg_at.sg_param_at + sg_first, sg_lanes_param);",
        ),
    ),
    "a state isn't stored": (
        "sg_pass_2",
        {"traffic"},
        lambda text: text.replace("    sg_store(sg_at.sg_m_at + sg_first, sg_lanes_m);\n", ""),
    ),
    "terms in float64 outside of terms": (
        "sg_pass_1",
        {"float64"},
        lambda text: text.replace("sg_lanes_m[sg_k] = m_new;", "sg_lanes_m[sg_k] = m_new * 1.5000000001;"),
    ),
    "a term is contracted": (
        "sg_pass_1",
        {"contraction"},
        lambda text: text.replace("{ return sg_a + sg_b; }", "{ return __fma_rn(sg_a, 1.0, sg_b); }"),
    ),
    "a stage in float32": (
        "sg_stage_2",
        {"float32"},
        lambda text: _stage(text, "= sg_wide[", "= (double)(float)1.1f * (double)(float)sg_wide["),
    ),
    "a stage that approximates": (
        "sg_stage_2",
        {"contraction"},
        lambda text: _stage(
            text, "sg_sqrt64(", "(1.0 + 1e-300 * __fma_rn(sg_size, sg_size, 1.0)) * sg_sqrt64("
        ),
    ),
    "narrow words": (
        "sg_pass_1",
        {"width"},
        lambda text: text.replace(
            "__stwb(reinterpret_cast<float4 *>(to + k), word)",
            "to[k] = word.x, to[k + 1] = word.y, to[k + 2] = word.z, to[k + 3] = word.w",
        ),
    ),
    "totals that all blocks add to": (
        "sg_pass_1",
        {"atomic"},
        lambda text: text.replace(
            "= sg_shared[0 * SG_THREADS];",
            "= sg_shared[0 * SG_THREADS];\n            atomicAdd(sg_partials, 1.0);",
        ),
    ),
}


@needs_nvrtc
@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str, tmp_path: Path) -> None:
    name, checks, change = FAULTS[what]
    text = change(text_of())
    assert text != text_of()
    with pytest.raises(StaticError) as raised:
        check_static(with_text(text, tmp_path), capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
    report = raised.value.report
    assert isinstance(report, StaticReport)
    found = {finding.check for row in report.failures if row.kernel == name for finding in row.findings}
    assert checks <= found


@needs_nvrtc
def test_a_kernel_that_is_missing(tmp_path: Path) -> None:
    text = text_of().replace("sg_stage_2(", "sg_stage_3(")
    (row, *_) = static_report(
        {"weigher": with_text(text, tmp_path)}, capabilities=[90], dtypes=FLOAT32, parts=["cuda"]
    ).failures
    assert row.measured is None
    assert row.kernel == ""
    assert [finding.check for finding in row.findings] == ["compilation"]
    assert "there is no kernel sg_stage_2" in row.findings[0].message


def test_iterations_without_elements_are_not_looked_at() -> None:
    """As of a thread that only meets the others at the barrier."""
    inside = """
        @%p1 bra IDLE;
        ld.global.f32 %f1, [%rd10];
        @%p2 bra IDLE;
        st.global.f32 [%rd10], %f1;
    IDLE:
        bar.sync 0;
    """
    found = kernel(POINTERS + loop(inside) + "ret;")
    flow = Flow(found)
    (main,) = flow.loops
    at = {
        (i.opcode): index
        for index, i in enumerate(found.instructions)
        if i.opcode in ("ld", "st") and "global" in i.modifiers
    }
    assert flow.counts(main, {at["ld"]: 1}) == (0, 1)
    assert flow.counts(main, {at["ld"]: 1}, frozenset({at["ld"]})) == (1, 1)
    assert flow.counts(main, {at["st"]: 1}, frozenset({at["ld"]})) == (0, 1)
    assert flow.counts(main, {at["ld"]: 1}, frozenset({at["st"]})) == (1, 1)
