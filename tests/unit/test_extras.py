"""What can be installed beside solvergen is told where people look for it."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def extras() -> dict[str, str]:
    """The extras of pyproject.toml, with what they bring as text."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    return dict(re.findall(r"^(\w+) = (\[.*?\])$", section, re.MULTILINE | re.DOTALL))


def test_every_extra_is_in_the_table() -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    table = page.split("| extra | for |\n")[1].split("\n\n")[0]
    named = {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    assert named == set(extras())


def test_the_examples_can_be_run_with_their_extra() -> None:
    """The README sets up with ``[examples]``, and one of them reads Caffe's files."""
    assert "solvergen[solver]" in extras()["examples"]
