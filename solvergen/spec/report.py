"""Findings as text for people and as data for programs. Nothing is found here, and nothing printed."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from solvergen.errors import Diagnostic

Style = Callable[[str, str], str]
"""How a piece of a report is dressed: (role, text) to text.

The roles are ``place``, ``error``, ``warning``, ``code``, ``message``, ``margin``, ``source``,
``caret`` and ``hint``. Whoever prints decides what they look like, and escapes what needs it.
"""

MAX_WIDTH = 100
"""Columns of a source line that are shown; of a longer one, those around the caret."""

_BEFORE = 40  # columns kept before the caret where a line is cut


def plain(role: str, text: str) -> str:
    """The style that changes nothing."""
    return text


def format_diagnostics(diagnostics: Iterable[Diagnostic], style: Style = plain) -> str:
    """All findings, a blank line between them; an empty text if there are none."""
    return "\n\n".join(format_diagnostic(diagnostic, style) for diagnostic in diagnostics)


def format_diagnostic(diagnostic: Diagnostic, style: Style = plain) -> str:
    """One finding: where and what, the line with a caret under it, and what to do.

    ::

        specs/adam.yaml:14:9: error: SG012: hyperparameters.lr.default must be a number, not the text 'abc'
           |
        14 |   lr: {default: abc}
           |                 ^^^
           = write a number, such as 0.001 or 1e-3
    """
    severity = "warning" if diagnostic.severity == "warning" else "error"
    head = ": ".join(
        (
            style("place", str(diagnostic.location)),
            style(severity, severity),
            style("code", diagnostic.code),
            style("message", _visible(diagnostic.message)),
        )
    )
    number = str(diagnostic.location.line)
    empty = " " * len(number)
    lines = [head]
    if diagnostic.source is not None and diagnostic.source.strip():
        shown, caret = _excerpt(diagnostic.source, diagnostic.location.column, diagnostic.location.end_column)
        lines += [
            style("margin", f"{empty} |"),
            style("margin", f"{number} |") + " " + style("source", shown),
            style("margin", f"{empty} |") + " " + style("caret", caret),
        ]
    if diagnostic.hint:
        lines.append(style("margin", f"{empty} =") + " " + style("hint", _visible(diagnostic.hint)))
    return "\n".join(lines)


def as_data(diagnostic: Diagnostic) -> dict[str, str | int | None]:
    """One finding as a dictionary that JSON can hold."""
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
        "file": diagnostic.location.file,
        "line": diagnostic.location.line,
        "column": diagnostic.location.column,
        "end_column": diagnostic.location.end_column,
        "source": diagnostic.source,
    }


def count(diagnostics: Iterable[Diagnostic]) -> str:
    """How many there are, in words: ``2 errors, 1 warning``; empty if there are none."""
    found = tuple(diagnostics)
    warnings = sum(1 for d in found if d.severity == "warning")
    numbers = ((len(found) - warnings, "error"), (warnings, "warning"))
    return ", ".join(f"{n} {noun}{'s' if n != 1 else ''}" for n, noun in numbers if n)


def _excerpt(line: str, column: int, end_column: int) -> tuple[str, str]:
    """The part of ``line`` to show, and a line with carets under the columns meant."""
    start = min(max(column - 1, 0), len(line))
    end = min(max(end_column - 1, start + 1), max(len(line), start + 1))
    first = 0
    cut = line
    if len(line) > MAX_WIDTH:
        first = max(0, min(start - _BEFORE, len(line) - MAX_WIDTH))
        cut = line[first : first + MAX_WIDTH]
    left = "…" if first else ""
    right = "…" if first + len(cut) < len(line) else ""
    shown = left + _visible(cut) + right
    before = _width(left + _visible(cut[: start - first]))
    marked = max(1, _width(_visible(cut[start - first : end - first])))
    return shown.rstrip(), " " * before + "^" * marked


def _visible(text: str) -> str:
    """``text`` with tabs as single blanks and control characters as question marks, one for one."""
    return "".join(" " if c == "\t" else "?" if unicodedata.category(c) in ("Cc", "Cs") else c for c in text)


def _width(text: str) -> int:
    """Columns that a terminal gives to ``text``."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
