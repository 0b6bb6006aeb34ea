"""``manifest.json``: which files solvergen wrote into a folder, each with the SHA-256 of what it wrote.

It is how stale files are told from other people's files, and edited ones from untouched ones. The list of
a build under way (``PENDING``) has the same form.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path

from solvergen.errors import OutputError
from solvergen.output.paths import is_plain

FORMAT = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")


def digest(data: bytes) -> str:
    """SHA-256 of ``data`` as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def render(digests: Mapping[str, str]) -> str:
    """The manifest's text for ``{relative path: digest}``: sorted, the same for the same files."""
    return json.dumps({"format": FORMAT, "files": dict(sorted(digests.items()))}, indent=2) + "\n"


def read(path: Path) -> dict[str, str] | None:
    """``{relative path: digest}`` as ``path`` lists them; None if there is no such file.

    Raises:
        OutputError: the file is not a manifest that this version writes. It decides what gets removed, so
            nothing about it is guessed.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    return parse(data, path)


def parse(data: bytes, path: Path) -> dict[str, str]:
    """``{relative path: digest}`` as ``data``, what ``path`` holds, lists them. Raises as ``read`` does."""
    try:
        content = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _unusable(path, f"it is not JSON ({error})") from None
    if not isinstance(content, dict) or not isinstance(content.get("files"), dict):
        raise _unusable(path, "it has no table 'files'")
    if content.get("format") != FORMAT:
        raise _unusable(path, f"its format is {content.get('format')!r}, this version knows {FORMAT}")
    files = {}
    for name, value in content["files"].items():
        if not is_plain(name):
            raise _unusable(path, f"{name!r} is not a path below its folder")
        if not isinstance(value, str) or not _DIGEST.fullmatch(value):
            raise _unusable(path, f"the digest of {name!r} is not a SHA-256")
        files[name] = value
    return files


def _unusable(path: Path, reason: str) -> OutputError:
    return OutputError(
        f"{path} can't be used: {reason}. Restore it (from version control), or build with --force: what the "
        "specs don't produce then stays where it is.",
        paths=(str(path),),
    )
