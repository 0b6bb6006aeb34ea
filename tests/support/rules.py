"""Specs and programs from a few lines of text, for tests of the compile half."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

from solvergen.compiler import compile_spec
from solvergen.emit.unit import Unit
from solvergen.errors import SpecError
from solvergen.frontend.resolve import analyse
from solvergen.ir.program import Program
from solvergen.spec.model import Spec
from solvergen.spec.reader import read_spec


def spec_text(
    update: str, *, hyperparameters: str = "lr: {default: 0.1}", options: str = "", state: str = ""
) -> str:
    """A spec around ``update`` (one equation a line, or YAML list items)."""
    lines = [line.strip() for line in update.strip().splitlines()]
    items = [line if line.startswith("- ") else f"- {line}" for line in lines]
    text = "name: rule\nsummary: A rule for a test.\n"
    for key, block in (("hyperparameters", hyperparameters), ("options", options), ("state", state)):
        if block.strip():
            text += f"{key}:\n{indent(block.strip(), '  ')}\n"
    return f"{text}update:\n{indent(chr(10).join(items), '  ')}\n"


def spec_of(folder: Path, update: str, **parts: str) -> Spec:
    """The spec that ``spec_text`` describes, read from a file in ``folder``."""
    path = folder / "rule.yaml"
    path.write_text(spec_text(update, **parts), encoding="utf-8")
    return read_spec(path)


def typed(folder: Path, update: str, **parts: str) -> Program:
    """The typed program of such a spec."""
    spec = spec_of(folder, update, **parts)
    found = analyse(spec)
    if found.typed is None:
        raise SpecError(found.diagnostics)
    return found.typed


def compiled(folder: Path, update: str, **parts: str) -> Unit:
    """Such a spec at all its levels."""
    return compile_spec(spec_of(folder, update, **parts))
