"""Many kernels in one report: what it holds, what it refuses, and that every kind of fault is an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from solvergen.errors import BackendUnavailable, StaticError, VerificationError
from solvergen.runtime.cuda import nvrtc
from solvergen.verify.static import StaticReport, check_static, static_report
from solvergen.verify.static.cpu import why_not
from solvergen.verify.static.cuda import traffic_of
from solvergen.verify.static.matrix import settings_of
from tests.unit.verify.support import faulty

needs_nvrtc = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
needs_cpu = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FLOAT32 = (("float32", "float32"),)


@pytest.fixture(scope="module")
def report() -> StaticReport:
    from solvergen.optimizers import Adam

    return static_report(
        {"adam": Adam}, capabilities=[80, 90], dtypes=[*FLOAT32, ("bfloat16", "float32")], parts=["cuda"]
    )


def test_settings_are_those_that_constraints_allow() -> None:
    from solvergen.optimizers import SGD

    found = settings_of(SGD.definition)
    assert len(found) == 6
    assert {"use_momentum": False, "nesterov": True, "maximize": False} not in found
    assert len({tuple(sorted(s.items())) for s in found}) == 6


def test_what_an_update_must_move() -> None:
    from solvergen.optimizers import Adam

    off = {"amsgrad": False, "maximize": False}
    plain = traffic_of(Adam.definition, off, "bfloat16", "float32")
    assert plain.itemsizes == {
        "param": 2,
        "grad": 4,
        "exp_avg": 4,
        "exp_avg_sq": 4,
        "max_exp_avg_sq": 4,
    }
    assert (plain.nbytes, plain.loaded) == (2 + 4 + 4 + 4 + 2 + 4 + 4, 14)
    assert traffic_of(Adam.definition, {**off, "amsgrad": True}, "float64", "float64").nbytes == 9 * 8


@needs_nvrtc
class TestReport:
    def test_a_row_for_each(self, report: StaticReport) -> None:
        assert report.ok
        assert report.complete
        assert len(report.rows) == 4 * 2 * 2
        assert len({str(row) for row in report.rows}) == 16
        assert str(report.rows[0]) == "adam (-) float32 sm_80"
        assert {row.dtypes for row in report.rows} == {"float32", "bfloat16/float32"}

    def test_numbers(self, report: StaticReport) -> None:
        row = report.as_json()["rows"][1]
        assert row["target"] == "sm_90"
        assert row["findings"] == []
        assert (row["spills"], row["shared"], row["stack"], row["width"]) == (0, 0, 0, 128)
        assert (row["loads_per_element"], row["loads_needed"]) == (4.0, 4)
        assert (row["stores_per_element"], row["stores_needed"]) == (3.0, 3)
        assert row["bytes_per_parameter"] == 28
        assert row["card"] == "H200"
        # 28e9 bytes at 4.8e12 a second
        assert row["ms_per_1e9_parameters"] == pytest.approx(28e9 / 4.8e12 * 1e3)
        assert row["bytes_in_flight"] == row["resident_threads"] * 4 * 16
        assert row["occupancy"] == row["resident_threads"] / 2048

    def test_json_is_plain(self, report: StaticReport) -> None:
        assert json.loads(json.dumps(report.as_json(), allow_nan=False))["ok"] is True

    def test_another_bandwidth(self) -> None:
        from solvergen.optimizers import Lion

        (row,) = static_report(
            {"lion": Lion}, capabilities=[90], dtypes=FLOAT32, parts=["cuda"], bandwidth=3350
        ).as_json()["rows"]
        assert row["card"] == ""
        assert row["ms_per_1e9_parameters"] == pytest.approx(20e9 / 3.35e12 * 1e3)

    def test_what_was_compiled_is_kept(self, monkeypatch: pytest.MonkeyPatch, report: StaticReport) -> None:
        from solvergen.optimizers import Adam

        def never(*_: Any, **__: Any) -> Any:
            raise AssertionError("compiled again")

        monkeypatch.setattr(nvrtc.Nvrtc, "compile", never)
        again = static_report({"adam": Adam}, capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
        assert [r.as_json() for r in again.rows] == [
            r.as_json() for r in report.rows if r.target == "sm_90" and r.dtypes == "float32"
        ]

    def test_line_numbers_change_nothing_else(self) -> None:
        from solvergen.optimizers import Adam
        from solvergen.runtime.kernel_interface import update_defines

        text = Path(Adam.definition.folder, "kernel.cu").read_text(encoding="utf-8")
        defines = update_defines("bfloat16", "float32", {"amsgrad": True, "maximize": False})
        for compiler in nvrtc.installed():
            plain = compiler.compile(text, "sm_90", defines)
            located = compiler.compile(text, "sm_90", defines, extra_flags=("-lineinfo",))
            assert plain.resources == located.resources
            code = [x.split() for x in plain.ptx.splitlines() if x.strip().endswith(";")]
            same = [x.split() for x in located.ptx.splitlines() if x.strip().endswith(";")]
            assert code == same


class TestRefused:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"capabilities": [70]}, "doesn't know compute capability 70"),
            ({"parts": ["gpu"]}, "static checks of cuda and cpu, not of 'gpu'"),
            ({"dtypes": [("float64", "float32")]}, r"\(.float64., .float32.\) is no pair of dtypes"),
        ],
    )
    def test_what_there_isnt(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(VerificationError, match=message):
            static_report({}, **arguments)

    def test_without_nvrtc_nothing_is_passed_over_silently(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from solvergen.optimizers import Lion

        def missing(major: int | None = None) -> Any:
            raise BackendUnavailable("the CUDA compiler NVRTC was not found; install it")

        monkeypatch.setattr(nvrtc, "load", missing)
        report = static_report({"lion": Lion}, parts=["cuda"])
        assert (report.rows, report.ok, report.complete) == ((), True, False)
        assert "NVRTC was not found" in report.as_json()["not_run"]["cuda"]
        with pytest.raises(VerificationError, match=r"static checks of cuda can't be done here: .*NVRTC"):
            check_static(Lion, parts=["cuda"])

    @needs_nvrtc
    def test_a_capability_that_the_compiler_doesnt_know(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from solvergen.optimizers import Lion

        compiler = nvrtc.Nvrtc(nvrtc.installed()[0].path)
        monkeypatch.setattr(nvrtc.Nvrtc, "capabilities", (75, 80))
        with pytest.raises(VerificationError, match="doesn't compile for sm_90; it knows 75, 80"):
            static_report({"lion": Lion}, capabilities=[80, 90], parts=["cuda"], compiler=compiler)


@needs_nvrtc
class TestFaults:
    """Kernels with a fault each; the finding says which line of which equation it is in."""

    @pytest.mark.parametrize(
        ("name", "right", "wrong", "checks", "where"),
        [
            (
                "adam",
                r"beta1 \* exp_avg \+",
                "beta1 * 1.5 * exp_avg +",
                {"float64"},
                "exp_avg = beta1*exp_avg + (1 - beta1)*g",
            ),
            (
                "adam",
                r"sg_sqrt\(max_exp_avg_sq_or",
                "expf(max_exp_avg_sq_or",
                {"approximation", "contraction", "flush to zero"},
                "denom = sqrt(",
            ),
            (
                "adam",
                r"beta2 \* exp_avg_sq \+ one_minus_beta2 \*",
                "fmaf(beta2, exp_avg_sq, 0) + one_minus_beta2 *",
                {"contraction"},
                "exp_avg_sq = beta2*exp_avg_sq",
            ),
            (
                "lion",
                r"const sg_real param = sg_lanes_param\[sg_k\];",
                "const sg_real param = sg_lanes_param[sg_k]"
                " + 0 * ((volatile sg_param *)sg_at.sg_param_at)[sg_first];",
                {"traffic", "width"},
                "",
            ),
            (
                "lion",
                r"    sg_store\(sg_at\.sg_exp_avg_at \+ sg_first, sg_lanes_exp_avg\);\n",
                "",
                {"traffic"},
                "",
            ),
            (
                "lion",
                r"reinterpret_cast<char \*>\(const_cast<sg_u64 \*>\(table\)\) \+ displacement",
                "reinterpret_cast<char *>(table[index])",
                {"generic address"},
                "",
            ),
            (
                "lion",
                r"__stwb\(reinterpret_cast<float4 \*>\(to \+ k\), word\)",
                "to[k] = word.x, to[k + 1] = word.y, to[k + 2] = word.z, to[k + 3] = word.w",
                {"width"},
                "",
            ),
            (
                "lion",
                r"sg_lanes_exp_avg\[sg_k\] = exp_avg_new",
                "sg_lanes_exp_avg[(int)exp_avg_new & 3] = 1",
                {"local memory"},
                "",
            ),
        ],
    )
    def test_in_cuda(self, name: str, right: str, wrong: str, checks: set[str], where: str) -> None:
        with faulty(name, "kernel.cu", right, wrong) as optimizer:
            with pytest.raises(StaticError) as raised:
                check_static(optimizer, capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
            report = raised.value.report
            assert isinstance(report, StaticReport)
            assert not report.ok
            for row in report.failures:
                found = {finding.check for finding in row.findings}
                assert checks <= found, row
                assert where in str(raised.value)
                assert f"{row}\n" in str(raised.value)
            assert isinstance(raised.value, AssertionError)

    def test_a_function_of_a_library(self) -> None:
        right, wrong = (
            r"sg_sqrt\(max_exp_avg_sq_or_exp_avg_sq\)",
            "(sg_real)pow((double)max_exp_avg_sq_or_exp_avg_sq, 0.5)",
        )
        with faulty("adam", "kernel.cu", right, wrong) as optimizer, pytest.raises(StaticError) as raised:
            check_static(optimizer, capabilities=[80], dtypes=FLOAT32, parts=["cuda"])
        report = raised.value.report
        assert isinstance(report, StaticReport)
        assert len(report.failures) == 4
        for row in report.failures:
            assert row.findings
            assert row.findings[0].line > 0

    def test_text_that_does_not_compile(self) -> None:
        with faulty("lion", "kernel.cu", "sg_real beta1 =", "sg_real beta_one =") as optimizer:
            report = static_report({"lion": optimizer}, capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
        (row,) = report.failures
        assert row.measured is None
        assert [finding.check for finding in row.findings] == ["compilation"]
        assert "beta1" in row.findings[0].message
        assert row.as_json()["findings"][0]["check"] == "compilation"

    @pytest.mark.parametrize(
        ("flag", "wrong", "check"),
        [
            ("--fmad=false", "--fmad=true", "contraction"),
            ("--ftz=false", "--ftz=true", "flush to zero"),
            ("--prec-div=true", "--prec-div=false", "approximation"),
        ],
    )
    def test_flags(self, monkeypatch: pytest.MonkeyPatch, flag: str, wrong: str, check: str) -> None:
        from solvergen.optimizers import Adam

        changed = tuple(wrong if f == flag else f for f in nvrtc.FLAGS)
        monkeypatch.setattr(nvrtc, "FLAGS", changed)
        with pytest.raises(StaticError, match=check):
            check_static(Adam, capabilities=[80], dtypes=FLOAT32, parts=["cuda"])

    def test_registers_that_do_not_suffice(self) -> None:
        right, wrong = r"__launch_bounds__\(256(, SG_MIN_BLOCKS)?\)", "__launch_bounds__(256, 8)"
        message = r"spill: 32 registers don't suffice: \d+ bytes stored and \d+ loaded"
        with (
            faulty("adam", "kernel.cu", right, wrong) as optimizer,
            pytest.raises(StaticError, match=message),
        ):
            check_static(optimizer, capabilities=[90], dtypes=[("float64", "float64")], parts=["cuda"])


@needs_cpu
def test_faults_in_native_kernels() -> None:
    right, wrong = r"(\+\+sg_i\) \{)", r'\1 if (sg_i & 1) __asm__ volatile("");'
    message = "not vectorised: the main loop works on one element at a time"
    with faulty("lion", "kernel.c", right, wrong) as optimizer, pytest.raises(StaticError, match=message):
        check_static(optimizer, dtypes=FLOAT32, parts=["cpu"])


@needs_cpu
def test_native_kernels_as_they_are() -> None:
    from solvergen.optimizers import Lion

    report = check_static(Lion, dtypes=[*FLOAT32, ("float64", "float64")], parts=["cpu"])
    assert [row.target for row in report.rows] == ["cpu", "cpu"]
    row = report.as_json()["rows"][0]
    assert row["packed"] > 0
    assert row["fused"] == 0


@needs_cpu
def test_a_c_compiler_that_refuses() -> None:
    right, wrong = "sg_real beta1 =", "sg_real beta_one ="
    with (
        faulty("lion", "kernel.c", right, wrong) as optimizer,
        pytest.raises(StaticError, match="compilation"),
    ):
        check_static(optimizer, dtypes=FLOAT32, parts=["cpu"])
