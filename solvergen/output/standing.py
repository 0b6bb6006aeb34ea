"""A folder beside a tree of which only the manifest's digest is known."""

from __future__ import annotations

from pathlib import Path

from solvergen.errors import OutputError
from solvergen.output import manifest
from solvergen.output.comparison import Comparison
from solvergen.output.paths import LOCK, MANIFEST, PENDING, STAGED, crosses_link


def standing(folder: Path, digest: str) -> Comparison | None:
    """``folder`` beside the tree whose manifest has ``digest``, if nothing differs, else None.

    Every file is read and compared. None, too, while another build is at work there or has left something.
    """
    try:
        if has_leftovers(folder) or (folder / MANIFEST).is_symlink():
            return None
        text = (folder / MANIFEST).read_bytes()
        if manifest.digest(text) != digest:
            return None
        listed = manifest.parse(text, folder / MANIFEST)
        contents = {MANIFEST: text}
        for path, written in listed.items():
            if crosses_link(folder, path):
                return None
            contents[path] = (folder / path).read_bytes()
            if manifest.digest(contents[path]) != written:
                return None
    except (OSError, OutputError):
        return None
    return Comparison(
        folder=folder,
        contents=dict(sorted(contents.items())),
        created=(),
        changed=(),
        unchanged=tuple(sorted(contents)),
        removed=(),
        edited=(),
        foreign=(),
        owned=tuple(sorted(listed)),
        refusals=(),
    )


def has_leftovers(folder: Path) -> bool:
    """Whether another build is at work in the folder or was killed there."""
    return (folder / LOCK).exists() or (folder / PENDING).exists() or any(folder.glob(f"{STAGED}*"))
