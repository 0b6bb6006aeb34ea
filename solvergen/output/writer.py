"""Carrying out a comparison: all of it, or as little as a crash allows, which the next build then repairs.

The order is what makes that true. Every new file is first written and flushed in a staging folder; then the
list of what is about to be written is stored beside the manifest; then stale files go and new ones are
renamed into place; the manifest comes last. Up to the first removal nothing has changed. A crash after it
leaves the pending list, by which the next build knows the half it finds for its own, not somebody's edits.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from solvergen.files import sync_folder
from solvergen.output import manifest
from solvergen.output.comparison import Comparison, compare
from solvergen.output.lock import locked
from solvergen.output.paths import MANIFEST, PENDING, STAGED
from solvergen.output.standing import has_leftovers


def write(folder: Path, tree: Mapping[str, str], *, force: bool = False, timeout: float = 30.0) -> Comparison:
    """Make ``folder`` hold ``tree`` ({relative path: text}) and a manifest; say what that took.

    Only files whose content differs are written, so the others keep their times. Files of an earlier build
    that ``tree`` lacks are removed, with the folders that this empties. If nothing differs, nothing is
    touched, and a read-only folder will do.

    Raises:
        OutputError: files are in the way (see Comparison), or another build held the folder for ``timeout``
            seconds. Nothing has changed.
        OSError: a file can't be written. Nothing has changed unless a rename itself failed; then the next
            build puts it right.
    """
    comparison = compare(folder, tree, force=force)
    if not comparison.differs and not has_leftovers(folder):
        return comparison
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, timeout=timeout):
        # Only now is what is there nobody else's unfinished work.
        comparison = compare(folder, tree, force=force)
        comparison.require_writable(force=force)
        _remove_staged(folder)
        with _staging(folder) as staging:
            _settle(comparison, staging)
            _apply(comparison, staging)
        _remove_emptied(folder, comparison.removed)
    return comparison


def _settle(comparison: Comparison, staging: Path) -> None:
    """After an interrupted build, make the manifest say what is there, before another build can break off."""
    folder = comparison.folder
    if (folder / PENDING).exists():
        there = {path: folder / path for path in comparison.owned if (folder / path).is_file()}
        digests = {path: manifest.digest(file.read_bytes()) for path, file in there.items()}
        _store(folder / MANIFEST, manifest.render(digests).encode("utf-8"), staging)
        os.unlink(folder / PENDING)


def _apply(comparison: Comparison, staging: Path) -> None:
    folder, contents = comparison.folder, comparison.contents
    fresh = sorted({*comparison.created, *comparison.changed} - {MANIFEST})
    for number, path in enumerate(fresh):
        _write_flushed(staging / str(number), contents[path])
    if fresh or comparison.removed:
        # The same text as the manifest that comes last: all that this build means to have written.
        _store(folder / PENDING, contents[MANIFEST], staging)
    for path in comparison.removed:
        os.unlink(folder / path)
    for number, path in enumerate(fresh):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        os.replace(staging / str(number), folder / path)
    for parent in sorted({(folder / path).parent for path in fresh}):
        sync_folder(parent)
    _store(folder / MANIFEST, contents[MANIFEST], staging)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(folder / PENDING)


@contextlib.contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    staging = folder / f"{STAGED}{secrets.token_hex(8)}"
    staging.mkdir()
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _store(target: Path, data: bytes, staging: Path) -> None:
    staged = staging / target.name
    _write_flushed(staged, data)
    os.replace(staged, target)
    sync_folder(target.parent)


def _write_flushed(path: Path, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _remove_staged(folder: Path) -> None:
    # Under the lock nobody else is staging: what is there was left by a build that was killed.
    for staging in folder.glob(f"{STAGED}*"):
        shutil.rmtree(staging, ignore_errors=True)


def _remove_emptied(folder: Path, removed: tuple[str, ...]) -> None:
    """Remove what Python cached of removed modules, and then the folders that hold nothing any more.

    A folder with nothing but caches would still import as a namespace package.
    """
    for path in removed:
        gone = folder / path
        if gone.suffix == ".py":
            for cached in gone.parent.glob(f"__pycache__/{gone.stem}.*.pyc"):
                cached.unlink(missing_ok=True)
    parents = {parent for path in removed for parent in (folder / path).parents if folder in parent.parents}
    for parent in sorted(parents, key=lambda p: len(p.parts), reverse=True):
        for candidate in (parent / "__pycache__", parent):
            with contextlib.suppress(OSError):
                candidate.rmdir()
