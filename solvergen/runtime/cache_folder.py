"""The folder in which compiled kernels are kept: private to its owner, its files whole and checked.

What lies here is loaded as machine code, so nobody else may be able to put anything into it. Where the
usual place can't be trusted or written, a private folder that lives as long as the process stands in.

A file is named ``<key>.<sha256 of its bytes><suffix>``: one rename publishes data and checksum together,
and a file that a crash or a failing disk has damaged is noticed and built again. The folder may be deleted
at any time.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

from solvergen.errors import CacheWarning
from solvergen.runtime.locks import ProcessLock

CACHE_VARIABLE = "SOLVERGEN_CACHE_DIR"

_lock = ProcessLock()
_warned: set[str] = set()
_private: dict[int, Path] = {}  # process id -> its folder; a forked child makes its own


@dataclass(frozen=True)
class CacheFolder:
    """An existing folder that only its owner can read and write.

    ``kind`` names the backend ("cuda", "native"), whose files live in a subfolder of that name.
    """

    path: Path
    kind: str

    def find(self, key: str, suffix: str) -> Path | None:
        """The path of the file stored under ``key``, its checksum verified, or None.

        A damaged file is removed if possible. ``key`` is a hexadecimal digest of everything that
        decides the content.
        """
        found = self._read(key, suffix)
        return None if found is None else found[0]

    def load(self, key: str, suffix: str) -> bytes | None:
        """The bytes stored under ``key``, verified, or None; what was checked is what is returned."""
        found = self._read(key, suffix)
        return None if found is None else found[1]

    def store(self, key: str, data: bytes, suffix: str) -> Path | None:
        """Keep ``data`` under ``key`` and return its path; a reader sees the whole file or none.

        With the disk full or the folder read-only the data goes to this process's private folder
        instead; None if that fails too. Several processes may store the same key at once.
        """
        name = f"{key}.{hashlib.sha256(data).hexdigest()}{suffix}"
        with contextlib.suppress(OSError):
            return _write_whole(self.path / name, data)
        with contextlib.suppress(OSError):
            folder = _private_folder() / self.kind
            folder.mkdir(mode=0o700, exist_ok=True)
            return _write_whole(folder / name, data)
        return None

    def _read(self, key: str, suffix: str) -> tuple[Path, bytes] | None:
        folders = [self.path]
        with _lock.held():
            if os.getpid() in _private:
                folders.append(_private[os.getpid()] / self.kind)
        for folder in folders:
            for path in _candidates(folder, key, suffix):
                data = _read_own_file(path)
                if data is not None and path.name == f"{key}.{hashlib.sha256(data).hexdigest()}{suffix}":
                    return path, data
                with contextlib.suppress(OSError):
                    path.unlink()
        return None


def open_cache(kind: str) -> CacheFolder:
    """The folder for compiled kernels of ``kind``, made if need be.

    ``$SOLVERGEN_CACHE_DIR``, else ``$XDG_CACHE_HOME/solvergen``, else ``~/.cache/solvergen``. Where that
    can't be made, belongs to someone else or can be written by others, a private temporary folder
    takes its place, and a ``CacheWarning`` says so once.

    Raises:
        OSError: not even a temporary folder can be made.
    """
    base = _location()
    try:
        if base is None:
            raise _Unusable("there is no home directory; set " + CACHE_VARIABLE + " to a folder of yours")
        return CacheFolder(_prepare(base, kind), kind)
    except (OSError, _Unusable) as problem:
        _warn_once(
            f"solvergen can't keep compiled kernels in {base or 'a cache folder'}: {problem}. "
            "They are compiled again in every process."
        )
        return private_cache(kind)


def private_cache(kind: str) -> CacheFolder:
    """A folder of this process alone, for what can't be kept. Raises OSError if there can't be one."""
    folder = _private_folder() / kind
    folder.mkdir(mode=0o700, exist_ok=True)
    return CacheFolder(folder, kind)


class _Unusable(Exception):
    """Why a folder isn't taken."""


def _location() -> Path | None:
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):  # the XDG specification: a relative path is to be ignored
        return Path(base) / "solvergen"
    home = os.path.expanduser("~")
    return Path(home) / ".cache" / "solvergen" if os.path.isabs(home) else None


def _prepare(base: Path, kind: str) -> Path:
    for parent in reversed(base.parents):
        parent.mkdir(mode=0o700, exist_ok=True)
    folder = base / kind
    for path in (base, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.stat()
        if status.st_uid != os.geteuid():
            raise _Unusable(f"{path} belongs to another user")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _Unusable(f"others may write to {path}; `chmod go-w` it")
    for parent in base.resolve().parents:
        mode = parent.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise _Unusable(f"anybody may rename what is in {parent}")
    return folder


def _private_folder() -> Path:
    """This process's own temporary folder, removed when it ends."""
    with _lock.held():
        owner = os.getpid()
        if owner not in _private:
            _private[owner] = Path(tempfile.mkdtemp(prefix="solvergen-"))
            atexit.register(_remove, owner, _private[owner])
        return _private[owner]


def _remove(owner: int, folder: Path) -> None:
    # A forked child inherits the registration, not the right to clean up.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _candidates(folder: Path, key: str, suffix: str) -> list[Path]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    wanted = (name for name in names if name.startswith(f"{key}.") and name.endswith(suffix))
    return [folder / name for name in sorted(wanted)]


def _read_own_file(path: Path) -> bytes | None:
    """The file's bytes if it is a plain file of ours that others can't write."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0))
        with open(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                return None
            if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return None
            return file.read()
    except OSError:
        return None


def _write_whole(path: Path, data: bytes) -> Path:
    temporary = path.with_name(f"tmp-{secrets.token_hex(8)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.chmod(temporary, 0o500 if path.suffix in (".so", ".dylib") else 0o400)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def _warn_once(message: str) -> None:
    with _lock.held():
        if message in _warned:
            return
        _warned.add(message)
    warnings.warn(message, CacheWarning, stacklevel=4)
