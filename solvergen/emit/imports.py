"""Import lines of generated Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def import_line(module: str, names: Iterable[str], aliases: Mapping[str, str]) -> str:
    """``from module import ...`` of the names that are used, sorted; empty if there are none."""
    parts = [
        name if aliases.get(name, name) == name else f"{name} as {aliases[name]}"
        for name in sorted(set(names))
    ]
    if not parts:
        return ""
    line = f"from {module} import {', '.join(parts)}"
    if len(line) <= 106:
        return line
    return "\n".join([f"from {module} import (", *(f"    {part}," for part in parts), ")"])


def import_blocks(*blocks: Iterable[str]) -> tuple[str, ...]:
    """Import lines in blocks (standard library, solvergen, the package itself) with an empty line between."""
    lines: list[str] = []
    for block in blocks:
        there = [line for line in block if line]
        if there:
            lines += ["", *there] if lines else there
    return tuple(lines)
