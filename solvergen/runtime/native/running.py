"""Runs a compiler in a scratch folder that is gone afterwards."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from solvergen.errors import NativeBuildError
from solvergen.runtime.cache_folder import CacheFolder
from solvergen.runtime.native import sanitizers

Result = TypeVar("Result")

_TIMEOUT = 600.0  # seconds; ziglang builds parts of its runtime at its first use
_FULL = ("No space left on device", "Disk quota exceeded", "File too large", "File size limit exceeded")


class NoRoom(OSError):
    """The compiler ran out of disk space."""


def in_scratch(cache: CacheFolder, work: Callable[[Path], Result]) -> Result:
    """What ``work`` makes in an empty private folder: a temporary one, or one in the cache where that fails.

    The folder is removed, but kept for the user to look at where a NativeBuildError comes out of it.
    Raises OSError if neither place will do.
    """
    for place in (None, cache.path):
        try:
            folder = Path(tempfile.mkdtemp(prefix="solvergen-build-", dir=place))
        except OSError as problem:
            failure = problem
            continue
        keep = False
        try:
            return work(folder)
        except NativeBuildError as refusal:
            keep = refusal.kept == str(folder)
            raise
        except OSError as problem:
            failure = problem
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
    raise failure


def run_compiler(
    command: Sequence[str], scratch: Path, cache: CacheFolder
) -> subprocess.CompletedProcess[str]:
    """Run to the end, messages in English, temporary files in ``scratch``.

    Raises NoRoom, OSError, NativeBuildError if the compiler is killed, KeyboardInterrupt if by Ctrl-C.
    """
    environment = dict(os.environ, LC_ALL="C", TMPDIR=str(scratch), ZIG_LOCAL_CACHE_DIR=str(scratch))
    if sanitizers.VARIABLE in environment:
        environment.pop("LD_PRELOAD", None)  # a sanitizer's library is for this process, not for the compiler
    kept = cache.path / "zig" if os.access(cache.path, os.W_OK) else scratch
    environment.setdefault("ZIG_GLOBAL_CACHE_DIR", str(kept))
    try:
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"not done after {_TIMEOUT:.0f} s")
    full = any(text in result.stderr for text in _FULL)
    if result.returncode == -signal.SIGINT:
        raise KeyboardInterrupt  # Ctrl-C is for both; a handler of the program's may have taken ours
    if -result.returncode in (signal.SIGTERM, signal.SIGHUP):
        raise NativeBuildError(
            "the C compiler was killed", log=result.stderr.strip(), command=shlex.join(command), kept="-"
        )
    if result.returncode != 0 and (full or result.returncode == -signal.SIGXFSZ):
        raise NoRoom(f"no space to compile: {result.stderr.strip()}")
    return result
