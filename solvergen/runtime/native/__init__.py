"""Native kernels on the CPU: finding a compiler, building and keeping kernels, threads to run them.

In the order in which a kernel passes through: ``compiler`` (find one that works), ``running`` (run it),
``build`` and ``loading`` (text to loaded library, kept between processes), ``library`` with ``pool.c``,
``gather.c`` and ``reduce.c`` (threads, reading gradients, totals of reductions), ``threads`` and
``processor`` (what the machine has).
``inspection`` reads what was compiled, ``sanitizers`` has it watched while it runs.
"""

from __future__ import annotations

import sys

from solvergen.errors import BackendUnavailable


def available() -> str | None:
    """None if native kernels can be built here, else why not and what to install.

    Cheap: what is known of the compiler is kept from earlier processes.
    """
    if sys.platform == "win32":
        return "native kernels need Linux or macOS"
    if sys.byteorder != "little":
        return "native kernels need a little-endian processor"
    from solvergen.runtime.native.compiler import find_compiler

    try:
        find_compiler()
    except BackendUnavailable as problem:
        return str(problem)
    return None
