"""Which relative paths may stand in a tree, and how one becomes a file without leaving the folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePosixPath

MANIFEST = "manifest.json"
PENDING = ".solvergen-pending.json"  # what a build was about to write; gone once it has finished
LOCK = ".solvergen-lock"  # there only while a build runs
STAGED = ".solvergen-staged-"  # prefix of a folder of new files that have not been renamed into place yet


def is_plain(path: str) -> bool:
    """Whether ``path`` is relative, in normal form with ``/``, below its folder and without hidden parts."""
    if not path or "\\" in path or "\0" in path or ":" in path:
        return False
    parts = path.split("/")
    return PurePosixPath(path).as_posix() == path and not any(not p or p.startswith(".") for p in parts)


def clashes(paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Pairs of paths that a file system which ignores case can't hold side by side, sorted.

    A file where another path needs a folder counts as well.
    """
    seen: dict[str, str] = {}
    found = []
    ordered = sorted(paths)
    for path in ordered:
        other = seen.setdefault(path.casefold(), path)
        if other != path:
            found.append((other, path))
    for path in ordered:
        for parent in PurePosixPath(path).parents:
            other = seen.get(parent.as_posix().casefold(), "")
            if other:
                found.append((other, path))
    return tuple(found)


def crosses_link(folder: Path, path: str) -> bool:
    """Whether ``path`` below ``folder`` is, or runs through, a symbolic link. ``folder`` may be one."""
    current = folder
    for part in path.split("/"):
        current = current / part
        if current.is_symlink():
            return True
    return False
