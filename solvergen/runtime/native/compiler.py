"""Finds a C compiler that works, and which options it takes.

Asking a compiler for its version and trying it out costs tens of milliseconds, so what was learnt is kept
beside the kernels, under the executable's path, size and time of change. A warm start runs no process.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from solvergen.errors import BackendUnavailable, NativeBuildError
from solvergen.runtime.cache_folder import CacheFolder, open_cache
from solvergen.runtime.locks import ProcessLock
from solvergen.runtime.native import sanitizers
from solvergen.runtime.native.loading import load_object
from solvergen.runtime.native.processor import processor
from solvergen.runtime.native.running import in_scratch, run_compiler

VARIABLE = "SOLVERGEN_CC"
INSTALL = (
    "install a C compiler (gcc or clang), or `pip install 'solvergen[native]'`, which brings one (ziglang)"
)

OPTIONS = (
    "-std=c11",
    "-O3",
    "-fPIC",
    "-fvisibility=hidden",
    # Not what an alias or a wrapper may have turned on ...
    "-fno-fast-math",
    "-fno-unsafe-math-optimizations",
    "-fno-associative-math",
    "-fno-reciprocal-math",
    "-fno-finite-math-only",
    "-fsigned-zeros",
    # ... and what changes no value but lets loops with square roots and comparisons be vectorised.
    "-fno-math-errno",
    "-fno-trapping-math",
    # a*b + c has two roundings.
    "-ffp-contract=off",
)
LINK = ("-shared", "-pthread", "-lm")
# What to add for this very processor, the first that the compiler takes.
NATIVE = (("-march=native",), ("-mcpu=native",), ())

_TRIAL = """\
#include <float.h>
#include <stdint.h>
#include <stdatomic.h>
#include <pthread.h>
__attribute__((visibility("default"))) int sg_trial(float *restrict x, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
        x[i] = __builtin_floorf(__builtin_sqrtf(x[i]));
    return FLT_EVAL_METHOD == 1 || FLT_EVAL_METHOD == 2 ? 1 : 42;
}
"""
_FORMAT = 2  # of what is kept about a compiler; raised when other options are tried


@dataclass(frozen=True)
class Compiler:
    """A C compiler that was tried out. ``identity`` changes when it is replaced by another version."""

    command: tuple[str, ...]
    options: tuple[str, ...]
    version: str
    identity: str

    def command_line(self, sources: list[str], output: str, *more: str) -> list[str]:
        """The command that makes the shared object ``output``."""
        return [*self.command, *self.options, *more, *sources, "-o", output, *LINK]


_lock = ProcessLock()
_found: dict[tuple[str | None, ...], Compiler | str] = {}


def find_compiler() -> Compiler:
    """The compiler for kernels: ``$SOLVERGEN_CC``, else the first that works of ``$CC``, cc, gcc, clang
    and ziglang. Looked for once for each setting of these variables and ``$PATH``.
    ``$SOLVERGEN_SANITIZE`` adds the options of sanitizers (``sanitizers.py``).

    Raises:
        BackendUnavailable: none works. The text says what was tried and what to install.
    """
    variables = (VARIABLE, "CC", "PATH", "SOLVERGEN_CACHE_DIR", sanitizers.VARIABLE)
    setting = tuple(os.environ.get(name) for name in variables)
    with _lock.held():
        if setting not in _found:
            _found[setting] = _search()
        found = _found[setting]
    if isinstance(found, str):
        raise BackendUnavailable(found)
    return found


def _search() -> Compiler | str:
    """The first candidate that works, or what to say if none does."""
    try:
        sanitizing = sanitizers.chosen()
    except BackendUnavailable as wrong:
        return str(wrong)
    reason = sanitizers.problem(sanitizing)
    if reason is not None:
        return reason
    cache = open_cache("native")
    tried = []
    for command in _candidates():
        compiler = _identify(command, cache, sanitizers.compiler_options(sanitizing))
        if isinstance(compiler, Compiler):
            return compiler
        tried.append(f"{shlex.join(command)}: {compiler}")
    chosen = os.environ.get(VARIABLE)
    if chosen:
        reason = tried[0] if tried else f"{chosen}: not found"
        return f"the C compiler that {VARIABLE} names doesn't work: {reason}. Correct or unset it"
    if not tried:
        return f"native kernels need a C compiler, and none was found: {INSTALL}"
    none = f"native kernels need a C compiler, and none that was found works: {INSTALL}"
    return "\n  ".join([none, *tried])


def _candidates() -> Iterator[tuple[str, ...]]:
    """Commands that exist, in order, with the executable's full path."""
    chosen = os.environ.get(VARIABLE)
    if chosen:
        yield from _on_path(chosen)
        return
    seen = set()
    for text in (os.environ.get("CC", ""), "cc", "gcc", "clang"):
        for command in _on_path(text):
            if command not in seen:
                seen.add(command)
                yield command
    yield from _ziglang()


def _on_path(text: str) -> Iterator[tuple[str, ...]]:
    try:
        words = shlex.split(text)
    except ValueError:
        return
    executable = shutil.which(words[0]) if words else None
    if executable is not None:
        yield (os.path.abspath(executable), *words[1:])


def _ziglang() -> Iterator[tuple[str, ...]]:
    package = importlib.util.find_spec("ziglang")
    for folder in (package.submodule_search_locations or ()) if package else ():
        executable = os.path.join(folder, "zig")
        if os.access(executable, os.X_OK):
            yield (executable, "cc")


def _identify(command: tuple[str, ...], cache: CacheFolder, more: tuple[str, ...]) -> Compiler | str:
    """The compiler, from what is kept or by trying it; or why it doesn't work."""
    try:
        status = os.stat(command[0])
    except OSError as problem:
        return str(problem)
    ours = [_FORMAT, OPTIONS, more, LINK, NATIVE, _TRIAL]
    about = [*command, status.st_mtime_ns, status.st_size, processor()]
    key = hashlib.sha256(json.dumps([ours, about]).encode()).hexdigest()
    kept = cache.load(key, ".json")
    if kept is None:
        learnt = _try_out(command, cache, more)
        if isinstance(learnt, str):
            return learnt  # not kept: a full disk may be at fault
        kept = json.dumps(learnt).encode()
        cache.store(key, kept, ".json")
    learnt = json.loads(kept)
    version = str(learnt["version"])
    identity = hashlib.sha256(json.dumps([key, version]).encode()).hexdigest()
    return Compiler(command, tuple(map(str, learnt["options"])), version, identity)


def _try_out(command: tuple[str, ...], cache: CacheFolder, more: tuple[str, ...]) -> dict[str, object] | str:
    """The version and the options that work, ``more`` among them, or what went wrong."""

    def work(scratch: Path) -> dict[str, object] | str:
        version = run_compiler([*command, "--version"], scratch, cache)
        if version.returncode != 0:
            return _last_words(version)
        source = scratch / "trial.c"
        source.write_text(_TRIAL, encoding="utf-8")
        problem = ""
        for number, native in enumerate(NATIVE):
            options = (*OPTIONS, *_quirks(version.stdout), *native, *more)
            output = scratch / f"trial{number}.so"
            compiler = Compiler(command, options, version.stdout, "")
            result = run_compiler(compiler.command_line([str(source)], str(output)), scratch, cache)
            if result.returncode != 0:
                problem = _last_words(result)
                continue
            try:
                answer = load_object(output).sg_trial(None, ctypes.c_int64(0))
            except (OSError, AttributeError) as failure:
                problem = f"what it makes can't be loaded: {failure}"
                continue
            if answer == 42:
                return {"version": version.stdout, "options": options}
            problem = "it computes float in a wider type"
        return problem

    try:
        return in_scratch(cache, work)
    except (OSError, NativeBuildError) as failure:
        return str(failure)


def _quirks(version: str) -> tuple[str, ...]:
    # `zig cc` adds checks for undefined behaviour, which stop the process where one triggers.
    if "clang" in version:
        return ("-fno-sanitize=undefined",)
    # gcc's removal of partial redundancies merges the branches of nested conditions into more ways than its
    # vectoriser understands; without it, loops with general powers are vectorised, too.
    return ("-fno-tree-pre",)


def _last_words(result: subprocess.CompletedProcess[str]) -> str:
    lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
    lines = [line for line in lines if "error" in line.lower()][:1] or lines
    return lines[-1].strip() if lines else f"it ended with status {result.returncode} and no message"
