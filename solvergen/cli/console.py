"""Printing: colours, tables and progress on a terminal; plain lines in a pipe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from solvergen.errors import Diagnostic, SolvergenError


_STYLES = {
    "place": "bold",
    "error": "bold red",
    "warning": "bold yellow",
    "margin": "blue",
    "caret": "bold red",
    "hint": "green",
}


def console(*, stderr: bool = False) -> Console:
    """A rich console that breaks no line of a pipe and reads no markup in what it is given."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def print_json(content: Any) -> None:
    """Print ``content`` as one JSON document on stdout, escaped where stdout's encoding needs it."""
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False)
    try:
        # In a locale that knows ASCII alone Python has surrogates for the other bytes of a file's name.
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def print_json_error(text: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
    """Print what is wrong as one JSON document on stdout, for those who asked for JSON."""
    from solvergen.spec.report import as_data

    print_json({"error": text, "diagnostics": [as_data(diagnostic) for diagnostic in diagnostics]})


def print_note(text: str) -> None:
    """Print a sentence for people on stderr; nothing unless somebody is watching it."""
    if sys.stderr.isatty():
        print(text, file=sys.stderr)


def print_error(error: SolvergenError) -> None:
    """Print what is wrong on stderr; of a spec every finding."""
    from solvergen.errors import SpecError

    if isinstance(error, SpecError):
        print_diagnostics(error.diagnostics)
    else:
        print(f"solvergen: {visible_lines(str(error))}", file=sys.stderr)


def print_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Print findings about specs on stderr, each with its line and a caret, and then their number."""
    if not diagnostics:
        return
    from solvergen.spec.report import count, format_diagnostics, plain

    if not sys.stderr.isatty():
        print(format_diagnostics(diagnostics, plain), file=sys.stderr)
        return
    from rich.markup import escape

    def coloured(role: str, text: str) -> str:
        style = _STYLES.get(role)
        return f"[{style}]{escape(text)}[/]" if style else escape(text)

    printer = console(stderr=True)
    printer.print(format_diagnostics(diagnostics, coloured), markup=True)
    printer.print(f"\n{count(diagnostics)}", style="bold")


def print_code(text: str, language: str) -> None:
    """Print a program text, coloured on a terminal and byte for byte in a pipe."""
    if not sys.stdout.isatty():
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        return
    from rich.syntax import Syntax

    console().print(Syntax(text, language, theme="ansi_dark", background_color="default"), soft_wrap=True)


def visible(text: str) -> str:
    """``text`` of a stranger's file on one line: escapes stand for what would act on the terminal or hide."""
    from solvergen.spec.characters import is_refused

    return "".join(ascii(c)[1:-1] if c in "\n\r\t" or is_refused(c) else c for c in text)


def visible_lines(text: str) -> str:
    """``text`` with its lines, each as ``visible`` shows it."""
    return "\n".join(map(visible, text.split("\n")))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Print a table on stdout: drawn on a terminal, tab-separated in a pipe. Columns ``numbers`` go right.

    What can't be seen in a cell is escaped, so that a cell stays a cell.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        for row in (heads, *rows):
            print("\t".join(row))
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, justify="right" if head in numbers else "left", overflow="fold")
    for row in rows:
        table.add_row(*row)
    console().print(table, soft_wrap=False)


@contextmanager
def progress(title: str) -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr while the block runs; call it with (what is at work, how many are done, of how many).

    Shown only to a terminal.
    """
    if not sys.stderr.isatty():
        yield lambda name, done, total: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    at = TextColumn("{task.fields[at]}")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), at)
    with Progress(*columns, console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, at="", total=None)

        def report(name: str, done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, at=f"{done}/{total} {name}")

        yield report
