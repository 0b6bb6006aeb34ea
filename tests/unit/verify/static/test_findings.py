"""What the parser refuses is a finding: a call of a library's function, or PTX that isn't known."""

from __future__ import annotations

import pytest

from solvergen.errors import PtxError
from solvergen.runtime.ptx.text import parse
from solvergen.verify.static.findings import unreadable
from tests.support.ptx import HEADER, kernel_of


@pytest.mark.parametrize(
    ("text", "check", "line"),
    [
        (f"{HEADER}.func (.param .b32 result) powf (.param .b32 x)\n{{ ret; }}\n", "library call", ".func"),
        (f"{HEADER}.visible .func powf ()\n{{ ret; }}\n", "library call", ".visible .func"),
        (kernel_of("call.uni powf, ();"), "library call", "call.uni"),
        (kernel_of(".reg .pred %p<2>;\n@!%p1 call powf;"), "library call", "@!%p1 call powf"),
        (kernel_of("tex.2d.v4.f32.f32 {%f1}, [functions, {%f2}];"), "unknown PTX", "tex.2d"),
        (kernel_of("add.s32 calls, calls, 1;"), "unknown PTX", "add.s32"),
    ],
)
def test_what_cannot_be_read_is_a_finding(text: str, check: str, line: str) -> None:
    with pytest.raises(PtxError) as refused:
        parse(text)
    finding = unreadable(refused.value)
    assert finding.check == check
    assert finding.text.startswith(line)
    assert text.splitlines()[finding.line - 1].strip().startswith(line)
