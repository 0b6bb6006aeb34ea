"""What the last build of the same specs came to, so that a build with nothing to do compiles nothing.

The same specs under the same compiler give the same package. A record, kept under a digest of all that
decides the package, holds the digest of the package's manifest and the warnings; whether the folder is what
that manifest says is then a matter of reading its files. Whatever doesn't fit means a build as if there
were no record.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import solvergen
from solvergen.errors import CacheWarning, Diagnostic, Location
from solvergen.output import Comparison, standing
from solvergen.output.manifest import digest
from solvergen.output.paths import MANIFEST
from solvergen.runtime.cache_folder import CacheFolder, open_cache
from solvergen.spec.files import shipped_folder, spec_files
from solvergen.spec.limits import MAX_BYTES
from solvergen.spec.report import as_data

FORMAT = 1

PACKAGES = ("jinja2", "pydantic", "ruamel.yaml")
"""What a build uses of others; another version may do something else."""

NO_PART = frozenset({"_data", "adapters", "bench", "deriving", "optimizers", "runtime", "solver", "verify"})
"""Folders of solvergen that the compiler doesn't import: a build comes to the same without them."""

DERIVING = (b"extends", b"of", b"\\")
"""What is somewhere in a spec that is derived from another (an escape may spell the key, too)."""

MOST = 64
"""Records that are kept: of more the oldest go."""

_SUFFIX = ".json"
_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Nothing:
    """A build that has nothing to write: what there is, and the warnings about its specs."""

    comparison: Comparison
    warnings: tuple[Diagnostic, ...]


def fingerprint(paths: Sequence[Path]) -> str | None:
    """A digest of all that decides what a build of ``paths`` writes and warns of; None if that isn't clear.

    Of each spec its path as given, the names by which the package speaks of it, and its bytes; the compiler's
    sources and templates; the versions of solvergen, Python and the packages used. If a spec may be derived
    from another, also all those that it could be derived from: which it is only the compiler knows.
    """
    specs = []
    read: list[str] = []
    try:
        for path in paths:
            files, problem = spec_files(path)
            if problem is not None:
                return None
            specs += [[file, *Path(file).resolve().parts[-2:], _digest_of_spec(file)] for file in files]
            read += files
        decisive = {"format": FORMAT, **compiler_state(), "specs": specs, "bases": _bases(read)}
    except (OSError, ValueError):
        return None
    return hashlib.sha256(json.dumps(decisive).encode("ascii")).hexdigest()


def find(key: str, out: Path) -> Nothing | None:
    """What a build under ``key`` would say of ``out`` if it has nothing to write there, else None."""
    cache = _cache()
    data = cache.load(key, _SUFFIX) if cache is not None else None
    record = _read(data) if data is not None else None
    if record is None:
        return None
    comparison = standing(out, record[0])
    return Nothing(comparison, record[1]) if comparison is not None else None


def keep(key: str | None, paths: Sequence[Path], written: Comparison, findings: Sequence[Diagnostic]) -> None:
    """Remember what a build of ``paths`` wrote and warned of, unless they changed after ``key`` was made.

    Where nothing can be kept nothing is.
    """
    if key is None or key != fingerprint(paths):
        return
    cache = _cache()
    if cache is None:
        return
    record = {
        "format": FORMAT,
        "manifest": digest(written.contents[MANIFEST]),
        "warnings": [as_data(finding) for finding in findings],
    }
    cache.store(key, json.dumps(record).encode("ascii"), _SUFFIX)
    with contextlib.suppress(OSError):
        kept = sorted(cache.path.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-MOST]:
            path.unlink(missing_ok=True)


def compiler_state() -> dict[str, Any]:
    """What decides, beside specs, what a build comes to: as data that JSON can hold.

    Raises OSError or ValueError if that isn't clear.
    """
    try:
        packages = [metadata.version(name) for name in PACKAGES]
    except metadata.PackageNotFoundError as missing:
        raise ValueError(f"the package {missing} isn't installed") from None
    return {
        "solvergen": solvergen.__version__,
        "python": sys.version,
        "packages": packages,
        "compiler": [[name, digest(path.read_bytes())] for name, path in compiler_files()],
    }


def digests_of_specs(folder: Path) -> list[list[str]]:
    """Names and digests of all specs in a folder, if it is one. Raises OSError, ValueError."""
    found = spec_files(folder)[0] if folder.is_dir() else ()
    return [[file, _digest_of_spec(file)] for file in found if os.path.isfile(file)]


def compiler_files() -> Iterator[tuple[str, Path]]:
    """The compiler's sources and templates, by their paths in the package, in order."""
    package = Path(solvergen.__file__).parent
    for top, suffix in ((package, ".py"), (package / "_data" / "templates", ".j2")):
        for parent, folders, files in os.walk(top, onerror=_fail):
            folders[:] = sorted(set(folders) - (NO_PART if parent == str(package) else set()))
            for name in sorted(files):
                if name.endswith(suffix):
                    path = Path(parent, name)
                    yield path.relative_to(package).as_posix(), path


def _fail(error: OSError) -> None:
    raise error


def _bases(files: Sequence[str]) -> list[list[str]]:
    """Names and digests of all specs that one of ``files`` may be derived from."""
    if not any(any(word in _bytes_of_spec(file) for word in DERIVING) for file in files):
        return []
    folders = dict.fromkeys([*(Path(file).parent for file in files), shipped_folder()])
    return [entry for folder in folders for entry in digests_of_specs(folder)]


def _digest_of_spec(file: str) -> str:
    return digest(_bytes_of_spec(file))


def _bytes_of_spec(file: str) -> bytes:
    if not stat.S_ISREG(os.stat(file).st_mode):
        raise ValueError(f"{file} is not a regular file")
    with open(file, "rb") as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{file} is too large to be a spec")
    return data


def _cache() -> CacheFolder | None:
    with warnings.catch_warnings():
        # Kernels that can't be kept are worth a warning, this isn't.
        warnings.simplefilter("ignore", CacheWarning)
        try:
            return open_cache("builds")
        except OSError:
            return None


def _read(data: bytes) -> tuple[str, tuple[Diagnostic, ...]] | None:
    """The manifest's digest and the warnings; None unless the record is exactly as ``keep`` writes it."""
    try:
        record = json.loads(data.decode("ascii"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or record.keys() != {"format", "manifest", "warnings"}:
        return None
    written, found = record["manifest"], record["warnings"]
    if type(record["format"]) is not int or record["format"] != FORMAT:
        return None
    if not isinstance(written, str) or not isinstance(found, list):
        return None
    findings = [_diagnostic(entry) for entry in found]
    if not _HASH.fullmatch(written) or any(finding is None for finding in findings):
        return None
    return written, tuple(finding for finding in findings if finding is not None)


def _diagnostic(entry: Any) -> Diagnostic | None:
    if not isinstance(entry, dict):
        return None
    try:
        place = Location(entry["file"], entry["line"], entry["column"], entry["end_column"])
        finding = Diagnostic(
            entry["code"], entry["message"], place, entry["hint"], entry["source"], entry["severity"]
        )
    except KeyError:
        return None
    texts = (finding.code, finding.message, place.file)
    perhaps = (finding.hint, finding.source)
    sound = (
        as_data(finding) == entry
        and finding.severity == "warning"
        and all(isinstance(text, str) for text in texts)
        and all(text is None or isinstance(text, str) for text in perhaps)
        and all(type(number) is int for number in (place.line, place.column, place.end_column))
    )
    return finding if sound else None
