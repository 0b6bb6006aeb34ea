"""Prose from a spec inside generated Python: docstrings and comments that cannot end early."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

WIDTH = 106


def in_docstring(text: str) -> str:
    """``text`` made safe between triple quotes."""
    return text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"').rstrip('"')


def paragraph(text: str, indent: str = "", hanging: str = "") -> list[str]:
    """``text`` wrapped; ``hanging`` is the extra indent of all lines but the first."""
    words = " ".join(text.split())
    return textwrap.wrap(
        in_docstring(words), WIDTH - 4, initial_indent=indent, subsequent_indent=indent + hanging,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def string(text: str) -> str:
    """A Python literal for ``text``, in double quotes where that needs no escapes."""
    literal = repr(text)
    if literal.startswith("'") and '"' not in text:
        return f'"{literal[1:-1]}"'.replace("\\'", "'")
    return literal


def signature(name: str, parameters: Iterable[str], result: str) -> list[str]:
    """A function's first line, or one line a parameter where it would be too long."""
    parameters = tuple(parameters)
    line = f"def {name}({', '.join(parameters)}) -> {result}:"
    if len(line) <= WIDTH:
        return [line]
    return [f"def {name}(", *(f"    {p}," for p in parameters), f") -> {result}:"]


def tuple_text(items: Iterable[str]) -> str:
    """The items as a Python tuple."""
    items = tuple(items)
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
