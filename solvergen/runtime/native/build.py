"""Compiles C into a shared object and loads it, or loads what was compiled before.

A kernel is kept under a key of all that decides it: its text and definitions, the compiler and its
options, the processor. Each process compiles in a folder of its own and publishes by renaming, so that
any number of them may build the same kernel at once.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from solvergen.errors import NativeBuildError
from solvergen.runtime.cache_folder import CacheFolder, open_cache
from solvergen.runtime.locks import ProcessLock
from solvergen.runtime.native.compiler import Compiler, find_compiler
from solvergen.runtime.native.loading import load_object
from solvergen.runtime.native.processor import processor
from solvergen.runtime.native.running import in_scratch, run_compiler

ABI = 1  # of kernels and of the runtime library: the tables and structures that they share
_lock = ProcessLock()
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
    with _lock.held():
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
    try:
        return None if path is None else load_object(path)
    except OSError:
        return None  # removed since it was checked, or not for this system: built again


def _compile(
    cache: CacheFolder, key: str, sources: Mapping[str, str], definitions: Sequence[str], compiler: Compiler
) -> ctypes.CDLL:
    def work(folder: Path) -> ctypes.CDLL:
        for name, text in sources.items():
            (folder / name).write_text(text, encoding="utf-8")
        output = folder / "kernel.so"
        names = [str(folder / name) for name in sources if name.endswith(".c")]
        command = compiler.command_line(names, str(output), *(f"-D{macro}" for macro in definitions))
        result = run_compiler(command, folder, cache)
        if result.returncode != 0:
            raise NativeBuildError(
                "the C compiler refuses a kernel",
                log=result.stderr.strip() or result.stdout.strip(),
                command=shlex.join(command),
                kept=str(folder),
            )
        return _publish(cache, key, output)

    try:
        return in_scratch(cache, work)
    except OSError as problem:
        raise NativeBuildError(
            f"a kernel can't be compiled: {problem}", log="", command=shlex.join(compiler.command), kept="-"
        ) from problem


def _publish(cache: CacheFolder, key: str, output: Path) -> ctypes.CDLL:
    """Store the shared object and load it from there, so that debuggers and profilers find it later."""
    path = cache.store(key, output.read_bytes(), ".so")
    return load_object(output if path is None else path)
