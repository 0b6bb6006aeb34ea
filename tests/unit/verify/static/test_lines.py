"""Kernels of rules with rows and columns: what they read of lines is counted, and what is wrong is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from generated import CAME, SM3
from solvergen.errors import StaticError
from solvergen.runtime.cuda import nvrtc
from solvergen.verify.static import StaticReport, check_static
from solvergen.verify.static.cuda import values_read

needs_nvrtc = pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
FLOAT32 = (("float32", "float32"),)
TEXT = Path(SM3.definition.folder, "kernel.cu").read_text(encoding="utf-8")


def test_values_are_counted_by_the_text() -> None:
    text = Path(CAME.definition.folder, "kernel.cu").read_text(encoding="utf-8")
    macros = {f"SG_OPTION_{name}": 0 for name in CAME.definition.option_names}
    assert values_read(text, 0, macros, tiles=True) == {8: 0, 9: 0, 10: 0}
    assert values_read(text, 2, macros, tiles=False) == {9: 2, 10: 1, 11: 0}
    assert values_read(text, 3, macros, tiles=True) == {8: 2, 9: 1, 10: 0}


@needs_nvrtc
def test_a_value_of_a_row_is_read_once_a_word() -> None:
    report = check_static(CAME, capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
    rows = {row["kernel"]: row for row in report.as_json()["rows"]}
    found = [rows[f"sg_pass_{n}"]["line_values_per_element"] for n in (0, 2, 3, 5)]
    assert found == [0.0, 2.0, 1.25, 2.0]


FAULTS: dict[str, tuple[str, Callable[[str], str]]] = {
    "a value of a column is read twice": (
        "traffic",
        lambda text: text.replace(
            "sg_rounded(sg_lines.sg_column[",
            "sg_rounded(((const volatile double *)sg_lines.sg_column)[sg_here.sg_column()] > "
            "((const volatile double *)sg_lines.sg_column)[sg_here.sg_column()] ? 0.0 : sg_lines.sg_column[",
        ),
    ),
    "narrow words": (
        "width",
        lambda text: text.replace(
            "__stwb(reinterpret_cast<float4 *>(to + k), word)",
            "to[k] = word.x, to[k + 1] = word.y, to[k + 2] = word.z, to[k + 3] = word.w",
        ),
    ),
    "float64 where a tile begins": (
        "float64",
        lambda text: text.replace(" = sg_scalars[0];", " = (sg_real)(sg_scalars[0] * 1.0000000001);"),
    ),
}


@needs_nvrtc
@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str, tmp_path: Path) -> None:
    check, change = FAULTS[what]
    text = change(TEXT)
    assert text != TEXT
    (tmp_path / "kernel.cu").write_text(text, encoding="utf-8")
    changed = type("Changed", (SM3,), {"definition": replace(SM3.definition, folder=str(tmp_path))})
    with pytest.raises(StaticError) as raised:
        check_static(changed, capabilities=[90], dtypes=FLOAT32, parts=["cuda"])
    report = raised.value.report
    assert isinstance(report, StaticReport)
    assert check in {finding.check for row in report.failures for finding in row.findings}
