"""What compilers make of the rules that hold constraints: what the static checks ask of every kernel."""

from __future__ import annotations

import pytest

from generated._constrain import Constrain
from generated._constrain_lines import ConstrainLines
from solvergen.runtime.cuda import nvrtc
from solvergen.verify.static import static_report


@pytest.mark.skipif(not nvrtc.installed(), reason="NVRTC isn't installed")
def test_kernels_for_gpus() -> None:
    report = static_report(
        [Constrain, ConstrainLines], capabilities=(80,), dtypes=[("float32", "float32")], parts=("cuda",)
    )
    assert len(report.rows) == 112  # of every choice of options
    # What only makes copies doesn't write the parameter, and compilers know it.
    assert [row for row in report.rows if row.findings and not row.options.get("unchanged")] == []


def test_loops_of_the_cpu() -> None:
    report = static_report([Constrain, ConstrainLines], dtypes=[("float32", "float32")], parts=("cpu",))
    # Bounds compare and choose, and what is unchanged is only copied: neither is arithmetic, so there is no
    # loop that the checks see.
    found = [row.options for row in report.rows if row.findings]
    assert [options for options in found if not options.get("bounded") and not options.get("unchanged")] == []
