"""Generated packages with a fault, for tests that need a finding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from solvergen import compiler
from solvergen.verify.collect import imported

SPECS = Path(__file__).parents[3] / "specs"


def place_of(name: str, equation: str) -> str:
    """Where an equation stands, as findings say it: ``specs/adam.yaml:47``."""
    lines = (SPECS / f"{name}.yaml").read_text(encoding="utf-8").splitlines()
    (number,) = (n for n, line in enumerate(lines, start=1) if line.strip().endswith(f" {equation}"))
    return f"specs/{name}.yaml:{number}"


@contextmanager
def faulty(name: str, file: str, right: str, wrong: str) -> Iterator[Any]:
    """The optimizer ``name`` with one text in one of its files replaced (a pattern, everywhere it stands)."""
    artifacts = dict(compiler.build([SPECS / f"{name}.yaml"]).artifacts)
    path = f"{name}/{file}"
    text, count = re.subn(right, wrong, artifacts[path])
    assert count, f"{right} is not in {path}"
    artifacts[path] = text
    with imported(artifacts) as optimizers:
        yield optimizers[name]
