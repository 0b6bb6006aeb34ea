"""The kernel that the native runtime is tested with is what today's template makes of it."""

from __future__ import annotations

from tests.support.handwritten.render_kernel import FOLDER, render


def test_it_is_rendered_from_the_template():
    assert (FOLDER / "adam" / "kernel.c").read_text(encoding="utf-8") == render(), (
        "run `python tests/support/handwritten/render_kernel.py`"
    )
