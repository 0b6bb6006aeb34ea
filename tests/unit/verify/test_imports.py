"""Verifying a package needs the runtime, NumPy and Hypothesis, but nothing of the compile half."""

from __future__ import annotations

import subprocess
import sys

COMPILE_HALF = (
    "sympy",
    "jinja2",
    "pydantic",
    "ruamel",
    "typer",
    "rich",
    "solvergen.compiler",
    "solvergen.spec",
)


def test_importing_verify_loads_nothing_of_the_compile_half() -> None:
    script = (
        "import sys, solvergen.verify as v; v.check_agreement(v.shipped()['lion'], ('numpy',), examples=1); "
        f"print(*(m for m in {COMPILE_HALF!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
