"""What docs/ptx.md shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.ptx import needs_nvrtc

PAGE = (Path(__file__).parents[3] / "docs" / "ptx.md").read_text(encoding="utf-8")


def without_numbers(line: str) -> str:
    """Lines and registers differ between compilers."""
    return re.sub(r"^\d+:|(?<=%)(rd|[a-z])\d+", "", line)


@needs_nvrtc
def test_stepping_through_a_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (shown,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(program, names)  # noqa: S102
    printed = capsys.readouterr().out.splitlines()
    pattern = [without_numbers(line) for line in shown.splitlines()]
    found = [without_numbers(line) for line in printed]
    assert [line for line in found if line in pattern][-5:] == pattern
    assert list(names["w"]) == [-4, -8, -12]  # type: ignore[call-overload]
