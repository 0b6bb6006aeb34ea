"""Findings that docs/verification.md shows name the lines of specs as they are."""

from __future__ import annotations

import re

from tests.unit.verify.support import SPECS, place_of


def test_equations_stand_where_the_page_says() -> None:
    page = (SPECS.parent / "docs" / "verification.md").read_text(encoding="utf-8")
    shown = re.findall(r"^ +equation +(.+?) +\((specs/(\w+)\.yaml:\d+)\)$", page, re.MULTILINE)
    assert len(shown) == 2
    for equation, place, name in shown:
        assert place == place_of(name, equation)
