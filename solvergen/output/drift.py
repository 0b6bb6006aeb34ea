"""How a folder differs from what its specs produce, as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator

from solvergen.output.comparison import Comparison
from solvergen.output.paths import MANIFEST


def unified_diff(comparison: Comparison) -> str:
    """The diff from what is in the folder to what the tree says; empty if they are the same.

    It applies with ``patch -p1`` inside the folder. The manifest's own lines, digests, are left out while
    another file differs.
    """
    paths = sorted({*comparison.created, *comparison.changed, *comparison.removed})
    shown = [path for path in paths if path != MANIFEST] or paths
    return _diff(comparison, shown)


def changes(comparison: Comparison) -> str:
    """The diff of the changed files alone, for people, to whom whole files say little."""
    alone = not (comparison.created or comparison.removed) and comparison.changed == (MANIFEST,)
    return _diff(comparison, [path for path in comparison.changed if path != MANIFEST or alone])


def _diff(comparison: Comparison, paths: Iterable[str]) -> str:
    return "".join(line for path in paths for line in _file_diff(comparison, path))


def _file_diff(comparison: Comparison, path: str) -> Iterator[str]:
    before = after = b""
    if path not in comparison.created:
        before = (comparison.folder / path).read_bytes()
    if path not in comparison.removed:
        after = comparison.contents[path]
    lines = difflib.unified_diff(
        _lines(before),
        _lines(after),
        "/dev/null" if path in comparison.created else f"a/{path}",
        "/dev/null" if path in comparison.removed else f"b/{path}",
    )
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(data: bytes) -> list[str]:
    # Not splitlines(): that would also break at form feeds and Unicode's line separators.
    *lines, tail = data.decode("utf-8", errors="replace").split("\n")
    return [line + "\n" for line in lines] + ([tail] if tail else [])
