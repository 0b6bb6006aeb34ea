"""Compiles C into a shared object and loads it, or loads what was compiled before.

A kernel is kept under a key of all that decides it: its text and definitions, the compiler and its
options, the processor. Each process compiles in a folder of its own and publishes by renaming, so that
any number of them may build the same kernel at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from solvergen.errors import NativeBuildError
from solvergen.runtime.cache_folder import CacheFolder, open_cache
from solvergen.runtime.native.compiler import Compiler, compiler_environment, find_compiler
from solvergen.runtime.native.processor import processor

ABI = 1  # of kernels and of the runtime library: the tables and structures that they share
_TIMEOUT = 600.0  # seconds

_lock = threading.RLock()
_loaded: dict[str, ctypes.CDLL] = {}


def load(sources: Mapping[str, str], definitions: Sequence[str] = ()) -> ctypes.CDLL:
    """The library made of ``sources`` (file name to text; ``.c`` files are compiled, others included).

    ``definitions`` are macros such as ``"SG_PARAM=0"``. Loaded once in a process.

    Raises:
        BackendUnavailable: there is no compiler that works.
        NativeBuildError: the compiler refuses the text, or its result can't be loaded.
    """
    compiler = find_compiler()
    key = _key(sources, definitions, compiler)
    with _lock:
        library = _loaded.get(key)
        if library is None:
            cache = open_cache("native")
            library = _from_cache(cache, key) or _compile(cache, key, sources, definitions, compiler)
            _loaded[key] = library
        return library


def _key(sources: Mapping[str, str], definitions: Sequence[str], compiler: Compiler) -> str:
    what = [ABI, sorted(sources.items()), list(definitions)]
    how = [compiler.identity, compiler.options, processor()]
    return hashlib.sha256(json.dumps([what, how]).encode()).hexdigest()


def _from_cache(cache: CacheFolder, key: str) -> ctypes.CDLL | None:
    path = cache.find(key, ".so")
    if path is None:
        return None
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        # Removed since it was checked, or the folder lies where nothing may be executed.
        data = cache.load(key, ".so")
        return None if data is None else _from_memory(data)


def _from_memory(data: bytes) -> ctypes.CDLL | None:
    """Load a shared object that no executable file system holds, where the system can (Linux)."""
    if not hasattr(os, "memfd_create"):
        return None
    try:
        descriptor = os.memfd_create("solvergen", os.MFD_CLOEXEC)
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        # The descriptor stays open: the loader tells libraries apart by name, and a number that is
        # used again would give the old one.
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def _compile(
    cache: CacheFolder, key: str, sources: Mapping[str, str], definitions: Sequence[str], compiler: Compiler
) -> ctypes.CDLL:
    """Compile in a temporary folder; where it is full, in the cache's."""
    for place in (None, str(cache.path)):
        try:
            folder = tempfile.mkdtemp(prefix="solvergen-build-", dir=place)
        except OSError as problem:
            failure = f"no folder to compile in: {problem}"
            continue
        keep = False
        try:
            for name, text in sources.items():
                Path(folder, name).write_text(text, encoding="utf-8")
            output = os.path.join(folder, "kernel.so")
            names = [os.path.join(folder, name) for name in sources if name.endswith(".c")]
            command = compiler.command_line(names, output, *(f"-D{macro}" for macro in definitions))
            result = _run(command, compiler_environment(folder, cache))
            if result.returncode == 0:
                library = _publish(cache, key, output)
                if library is not None:
                    return library
                failure = f"what {shlex.join(compiler.command)} made can't be loaded"
                continue
            log = result.stderr.strip() or result.stdout.strip()
            if _out_of_space(result.returncode, log):
                failure = f"no space to compile: {log}"
                continue
            keep = True
            raise NativeBuildError(
                "the C compiler refuses a kernel", log=log, command=shlex.join(command), kept=folder
            )
        except OSError as problem:
            failure = str(problem)
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
    command_line = shlex.join(compiler.command)
    raise NativeBuildError(f"a kernel can't be compiled: {failure}", log="", command=command_line, kept="-")


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
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


def _out_of_space(status: int, log: str) -> bool:
    texts = ("No space left on device", "Disk quota exceeded", "File too large", "File size limit exceeded")
    return status == -signal.SIGXFSZ or any(text in log for text in texts)


def _publish(cache: CacheFolder, key: str, output: str) -> ctypes.CDLL | None:
    """Store the shared object and load it from there, so that debuggers and profilers find it later."""
    data = Path(output).read_bytes()
    path = cache.store(key, data, ".so")
    try:
        return ctypes.CDLL(str(path if path is not None else output))
    except OSError:
        return _from_memory(data)


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
