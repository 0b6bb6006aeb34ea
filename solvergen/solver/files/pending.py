"""A pair that replaces an older pair of the same names, as a whole or not at all.

Two files can't be renamed at once. So a record is written first, which says which complete file is to get
which name. From then on the new pair counts: who reads takes the files from where the record says, who
writes finishes the renames. Without an older pair no record is needed: a state comes after its model.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Sequence

from solvergen.files import sync_folder
from solvergen.runtime.snapshots import strict_json
from solvergen.runtime.snapshots.atomic import made
from solvergen.runtime.snapshots.atomic import prefix_of as prefix_of_temporaries

_SUFFIX = ".solvergen-pair"
_MOST_BYTES = 100_000
_NAME = re.compile(
    r"(?P<stem>(?P<prefix>.*)_iter_[0-9]+)(\.caffemodel(\.h5)?|\.solverstate(\.h5)?|\.(model|state)\.safetensors)",
    re.DOTALL,
)


def current(path: str) -> str:
    """Where the file is that is meant by ``path``: there, or where a record says."""
    folder, name = os.path.split(path)
    match = _NAME.fullmatch(name)
    if match is None or not os.path.lexists(path):
        return path
    for temporary, final in _read(os.path.join(folder, _record_name(match["prefix"], match["stem"]))):
        if final == name and os.path.exists(os.path.join(folder, temporary)):
            return os.path.join(folder, temporary)
    return path


def prefix_of(path: str) -> str | None:
    """The prefix of a snapshot's file; None: it isn't called as one."""
    folder, name = os.path.split(path)
    match = _NAME.fullmatch(name)
    return None if match is None else os.path.join(folder, match["prefix"])


def record(folder: str, prefix: str, stem: str, renames: Sequence[tuple[str, str]]) -> str:
    """Write the record of ``renames``, pairs of names in ``folder``; its path. Raises ``OSError``."""
    path = os.path.join(folder, _record_name(prefix, stem))
    with made(folder, prefix_of_temporaries(prefix)) as file:
        with open(file.path, "wb") as opened:
            opened.write(strict_json.dump([list(rename) for rename in renames]).encode("ascii"))
        file.complete()
        os.replace(file.path, path)
    sync_folder(folder or ".")
    return path


def finish(path: str) -> None:
    """Do the renames of the record at ``path``, then remove it. Raises ``OSError``.

    Somebody else may be at it: what has its name already isn't renamed again.
    """
    folder = os.path.dirname(path)
    for temporary, final in _read(path):
        with contextlib.suppress(FileNotFoundError):
            os.replace(os.path.join(folder, temporary), os.path.join(folder, final))
    sync_folder(folder or ".")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def finish_all(folder: str, prefix: str) -> None:
    """Do what killed writers of this prefix left undone. Raises ``OSError``."""
    beginning = _beginning(prefix)
    try:
        names = os.listdir(folder or ".")
    except PermissionError:
        return  # a folder that can be written but not listed
    for name in names:
        if name.startswith(beginning) and name.endswith(_SUFFIX):
            path = os.path.join(folder, name)
            if all(os.path.lexists(os.path.join(folder, final)) for _, final in _read(path)):
                finish(path)
            else:
                _forget(path)


def _forget(path: str) -> None:
    """Remove a record and its files: the pair was removed since, and half of it must not come back."""
    folder = os.path.dirname(path)
    for temporary, _ in _read(path):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, temporary))
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def _beginning(prefix: str) -> str:
    return f".{hashlib.sha256(os.fsencode(prefix)).hexdigest()[:16]}-"


def _record_name(prefix: str, stem: str) -> str:
    return f"{_beginning(prefix)}{hashlib.sha256(os.fsencode(stem)).hexdigest()[:16]}{_SUFFIX}"


def _read(path: str) -> list[tuple[str, str]]:
    """The renames of a record; none if there is no record, or it isn't one."""
    try:
        with open(path, "rb") as file:
            value = strict_json.parse(file.read(_MOST_BYTES))
    except (OSError, ValueError):
        return []
    if not isinstance(value, list):
        return []
    renames = [tuple(item) for item in value if isinstance(item, list) and len(item) == 2]
    plain = all(isinstance(n, str) and n and os.path.basename(n) == n for rename in renames for n in rename)
    return [(str(temporary), str(final)) for temporary, final in renames] if plain else []
