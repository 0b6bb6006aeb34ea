"""Which spec files a path stands for. A build with nothing to do asks no more: little may be loaded here."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from solvergen.errors import Diagnostic, Location

SUFFIXES = (".yaml", ".yml")


def spec_files(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], Diagnostic | None]:
    """The spec files that ``path``, a file or a folder, stands for, sorted; or what is wrong with it."""
    shown = posix(path)
    if not os.path.isdir(path):
        return (shown,), None
    try:
        with os.scandir(path) as entries:
            names = [e.name for e in entries if e.name.endswith(SUFFIXES) and not e.name.startswith(".")]
    except OSError as error:
        return (), unreadable(shown, f"the folder can't be read: {error.strerror}")
    if not names:
        where = "" if shown == "specs" else f" --specs {shlex.quote(shown)}"
        hint = f"spec files end in .yaml; `solvergen new NAME{where}` writes one to start from"
        return (), unreadable(shown, "there are no specs in this folder", hint)
    return tuple(posix(Path(path) / name) for name in sorted(names)), None


def shipped_folder() -> Path:
    """The folder of the specs that come with solvergen, wherever it is installed."""
    return Path(__file__).parents[1] / "_data" / "specs"


def named_in(folder: Path, name: str) -> Path | None:
    """The spec file of that name in a folder; None if there is none."""
    return next((path for suffix in SUFFIXES if (path := folder / f"{name}{suffix}").is_file()), None)


def unreadable(shown: str, message: str, hint: str | None = None) -> Diagnostic:
    """The finding about a file or folder that can't be read."""
    return Diagnostic("SG001", message, Location(shown, 1, 1, 2), hint)


def posix(path: str | os.PathLike[str]) -> str:
    """``path`` as it is shown, with forward slashes."""
    return os.fspath(path).replace(os.sep, "/")
