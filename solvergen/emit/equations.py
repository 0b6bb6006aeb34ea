"""The update of a spec as lines of text, for docstrings."""

from __future__ import annotations

from solvergen.spec.model import Spec


def equation_lines(spec: Spec) -> list[str]:
    """One line an equation, with ``when ...:`` before those that options decide."""
    lines = []
    for statement in spec.update:
        equation = " ".join(statement.equation.text.split())
        when = f"when {' '.join(statement.when.text.split())}: " if statement.when else ""
        lines.append(f"{when}{equation}")
    return lines
