"""Kernels and the native runtime under the compiler's sanitizers: ``SOLVERGEN_SANITIZE=address,undefined``.

``address`` reports accesses outside allocated memory, ``undefined`` what C leaves undefined, ``thread`` races
between the pool's threads. What is found ends the process with a report. The libraries of ``address`` and
``thread`` must be in the process before anything else is, so Python has to be started anew:

    python -m solvergen.runtime.native.sanitizers address,undefined -m solvergen verify --backends cpu

runs ``python -m solvergen verify --backends cpu`` in such an environment. For Linux and gcc. Slow.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence

from solvergen.errors import BackendUnavailable

VARIABLE = "SOLVERGEN_SANITIZE"

# Options of gcc's, the library that must be loaded first, and a symbol of it.
_OPTIONS = {
    "address": ("-fsanitize=address",),
    "undefined": ("-fsanitize=undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
    "thread": ("-fsanitize=thread",),
}
_LIBRARIES = {"address": ("libasan.so", "__asan_init"), "thread": ("libtsan.so", "__tsan_init")}
_READABLE = ("-g", "-fno-omit-frame-pointer")  # reports name lines and callers
_NO_RANDOM_ADDRESSES = 0x0040000  # of personality(2); some kernels map where ThreadSanitizer needs room


def chosen() -> tuple[str, ...]:
    """The sanitizers that ``$SOLVERGEN_SANITIZE`` names, sorted; mostly none.

    Raises:
        BackendUnavailable: it names one that there isn't, or two that don't go together.
    """
    return parsed(os.environ.get(VARIABLE, ""))


def parsed(text: str) -> tuple[str, ...]:
    """The sanitizers in a comma-separated list, sorted. Raises BackendUnavailable."""
    names = sorted({name.strip() for name in text.split(",") if name.strip()})
    for name in names:
        if name not in _OPTIONS:
            raise BackendUnavailable(f"{VARIABLE} names {name!r:.40}; there are {', '.join(_OPTIONS)}")
    if "address" in names and "thread" in names:
        raise BackendUnavailable(f"{VARIABLE}: address and thread can't be used together")
    return tuple(names)


def compiler_options(names: Sequence[str]) -> tuple[str, ...]:
    """What to add to the options of the compiler."""
    if not names:
        return ()
    return (*(option for name in names for option in _OPTIONS[name]), *_READABLE)


def problem(names: Sequence[str]) -> str | None:
    """Why code under these sanitizers can't be loaded into this process, None if it can.

    To be asked before it is loaded: the sanitizers' libraries end a process that doesn't begin with them.
    """
    for name in names:
        if name in _LIBRARIES and not hasattr(ctypes.CDLL(None), _LIBRARIES[name][1]):
            return (
                f"{VARIABLE}={','.join(names)} needs the sanitizer's library in the process from the start; "
                f"begin it with `python -m {__spec__.name} {','.join(names)} ...`"
            )
    return None


def environment(names: Sequence[str], compiler: Sequence[str]) -> dict[str, str]:
    """Variables to be set for a Python process whose kernels are built under these sanitizers.

    Raises:
        BackendUnavailable: ``compiler`` doesn't come with the library of one of them.
    """
    variables = {VARIABLE: ",".join(names), "PYTHONMALLOC": "malloc"}
    # Python keeps much until it ends. Threads are looked at, not processes: a child goes on after a fork.
    variables["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=0:exitcode=99"
    variables["TSAN_OPTIONS"] = "exitcode=99:halt_on_error=1:die_after_fork=0"
    variables["UBSAN_OPTIONS"] = "print_stacktrace=1"
    preloaded = [_library(compiler, _LIBRARIES[name][0]) for name in names if name in _LIBRARIES]
    if preloaded:
        variables["LD_PRELOAD"] = ":".join(preloaded)
    return variables


def _library(compiler: Sequence[str], name: str) -> str:
    """The path of a library that comes with the compiler."""
    try:
        done = subprocess.run(
            [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.SubprocessError) as failure:
        raise BackendUnavailable(f"the C compiler can't be asked for {name}: {failure}") from None
    path = done.stdout.strip()
    if done.returncode != 0 or not os.path.isabs(path):  # it answers with the bare name if it has none
        raise BackendUnavailable(f"the C compiler {compiler[0]} comes without {name}; gcc on Linux has it")
    return os.path.realpath(path)


def without_random_addresses() -> None:
    """Let this process's memory, from the next ``exec`` on, lie where it always does. Linux only."""
    ctypes.CDLL(None).personality(ctypes.c_ulong(_NO_RANDOM_ADDRESSES))


def main(arguments: Sequence[str]) -> None:
    """Become ``python ARGUMENTS`` with kernels under sanitizers. Never returns."""
    if len(arguments) < 2:
        raise SystemExit(f"usage: python -m {__spec__.name} address,undefined|thread ARGUMENTS_OF_PYTHON ...")
    if sys.platform != "linux":
        raise SystemExit("kernels can be run under sanitizers on Linux only")
    from solvergen.runtime.native.compiler import find_compiler

    os.environ.pop(VARIABLE, None)  # the compiler that is looked for here is the plain one
    try:
        names = parsed(arguments[0])
        variables = environment(names, find_compiler().command)
    except BackendUnavailable as reason:
        raise SystemExit(str(reason)) from None
    if "thread" in names:
        without_random_addresses()
    os.execve(sys.executable, [sys.executable, *arguments[1:]], {**os.environ, **variables})


if __name__ == "__main__":
    main(sys.argv[1:])
