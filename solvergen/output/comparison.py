"""What a build would do to a folder. Reads, and touches nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from solvergen.errors import CompilerBug, OutputError
from solvergen.output import manifest
from solvergen.output.paths import LOCK, MANIFEST, PENDING, STAGED, clashes, crosses_link, is_plain


@dataclass(frozen=True)
class Comparison:
    """A tree beside the folder that it is for. All paths are relative, with ``/``, and sorted.

    Attributes:
        folder: the folder, which need not exist.
        contents: the whole new tree as bytes, ``manifest.json`` included.
        created: paths that are not there yet.
        changed: paths whose content differs.
        unchanged: paths that hold the new content already.
        removed: files of an earlier build that the new tree lacks.
        edited: members of ``changed`` and ``removed`` that were altered since solvergen wrote them.
        foreign: files in the way that solvergen never wrote: at a path of the new tree, or, if the folder has
            no manifest, anywhere in it.
        owned: every path that solvergen wrote or was about to write, by the folder's own lists.
        refusals: reasons, beside ``edited`` and ``foreign``, why the folder can't be used even by force.
    """

    folder: Path
    contents: Mapping[str, bytes]
    created: tuple[str, ...]
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    foreign: tuple[str, ...]
    owned: tuple[str, ...]
    refusals: tuple[str, ...]

    @property
    def differs(self) -> bool:
        """Whether the folder is not exactly what the tree says."""
        return bool(self.created or self.changed or self.removed)

    def require_writable(self, *, force: bool) -> None:
        """Raise OutputError unless the tree may be written. ``force`` overrules edited and foreign files."""
        if self.refusals:
            raise OutputError("\n".join(self.refusals))
        if force:
            return
        if self.edited:
            raise OutputError(
                f"edited by hand since solvergen wrote them:\n{_listed(self.folder, self.edited)}\n"
                "Move the changes into the spec, or build with --force to overwrite them.",
                paths=self.edited,
            )
        if self.foreign:
            raise OutputError(
                f"{self.folder} holds files that solvergen didn't write:\n"
                f"{_listed(self.folder, self.foreign)}\n"
                "Choose another folder with --out, or build with --force: files of the same name are "
                "overwritten, others stay.",
                paths=self.foreign,
            )


def compare(folder: Path, tree: Mapping[str, str], *, force: bool = False) -> Comparison:
    """Compare ``tree`` ({relative path: text}) with ``folder``.

    With ``force`` a manifest that can't be read counts as none.

    Raises:
        OutputError: the manifest can't be read, ``folder`` is a file, or two paths of the tree clash.
        CompilerBug: the tree holds a path outside its folder.
    """
    _require_sound(tree)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; the generated package needs a folder", paths=(str(folder),))
    contents = {path: text.encode("utf-8") for path, text in tree.items()}
    digests = {path: manifest.digest(data) for path, data in contents.items()}
    contents[MANIFEST] = manifest.render(digests).encode("utf-8")

    known = [_read_or_none(folder / name, force) for name in (MANIFEST, PENDING)]
    lists = [digests for digests in known if digests is not None]
    ours = {path for digests in lists for path in digests}

    created: list[str] = []
    changed: list[str] = []
    unchanged: list[str] = []
    removed: list[str] = []
    edited: list[str] = []
    foreign: list[str] = []
    refusals: list[str] = []
    for path in sorted(contents):
        found = _content(folder, path, refusals)
        if found is None:
            created.append(path)
        elif found == contents[path]:
            unchanged.append(path)
        else:
            changed.append(path)
            if path != MANIFEST and path not in ours:
                foreign.append(path)
            elif path != MANIFEST and not _as_written(path, found, *lists):
                edited.append(path)
    for path in sorted(ours - set(contents)):
        found = _content(folder, path, refusals)
        if found is None:
            continue
        removed.append(path)
        if not _as_written(path, found, *lists):
            edited.append(path)
    if not lists:
        # A file that holds exactly what would be written is no stranger: only the manifest got lost.
        foreign = sorted(_files(folder) - set(unchanged))
    return Comparison(
        folder=folder,
        contents=dict(sorted(contents.items())),
        created=tuple(created),
        changed=tuple(changed),
        unchanged=tuple(unchanged),
        removed=tuple(removed),
        edited=tuple(sorted(edited)),
        foreign=tuple(foreign),
        owned=tuple(sorted(ours)),
        refusals=tuple(refusals),
    )


def _require_sound(tree: Mapping[str, str]) -> None:
    for path in tree:
        if not is_plain(path) or path == MANIFEST:
            raise CompilerBug(f"the generated tree holds the path {path!r}")
    for one, other in clashes(tree):
        raise OutputError(
            f"{one!r} and {other!r} can't stand side by side where file names ignore case; "
            "rename one of the specs",
            paths=(one, other),
        )


def _read_or_none(path: Path, force: bool) -> dict[str, str] | None:
    try:
        return manifest.read(path)
    except OutputError:
        if force:
            return None
        raise


def _as_written(path: str, found: bytes, *lists: Mapping[str, str]) -> bool:
    # A build that was interrupted left some files as the manifest says and some as its pending list says.
    return manifest.digest(found) in {digests.get(path) for digests in lists}


def _content(folder: Path, path: str, refusals: list[str]) -> bytes | None:
    """The bytes at ``path``; None if nothing is there or if something is there that no file can replace."""
    if crosses_link(folder, path):
        refusals.append(f"{folder / path} is, or lies behind, a symbolic link: remove the link")
        return None
    try:
        return (folder / path).read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        refusals.append(f"{folder / path} is a folder where a generated file belongs")
    except NotADirectoryError:
        refusals.append(f"{folder / path}: one of its folders is a file")
    return None


def _files(folder: Path) -> set[str]:
    """All files below ``folder`` but Python's caches and what an interrupted build leaves."""
    found = set()
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__" and not name.startswith(STAGED)]
        links = [name for name in folders if os.path.islink(os.path.join(parent, name))]
        for name in (*files, *links):
            found.add(Path(parent, name).relative_to(folder).as_posix())
    return found - {LOCK, PENDING}


def _listed(folder: Path, paths: tuple[str, ...], most: int = 10) -> str:
    lines = [f"    {folder / path}" for path in paths[:most]]
    if len(paths) > most:
        lines.append(f"    ... and {len(paths) - most} more")
    return "\n".join(lines)
