"""Where, with what and beside what a benchmark ran."""

from __future__ import annotations

import os
import platform
import sys

import numpy as np

from solvergen import __version__
from solvergen.runtime import native


def conditions() -> dict[str, str]:
    """Processor, threads, load, versions: what has to be said with every figure."""
    found = {"processor": _processor(), "threads": "1", "load": "unknown"}
    if hasattr(os, "getloadavg"):
        found["load"] = f"{os.getloadavg()[0]:.2f}"
    if native.available() is None:
        from solvergen.runtime.native.compiler import find_compiler
        from solvergen.runtime.native.threads import thread_count

        found["threads"] = str(thread_count())
        found["compiler"] = find_compiler().version.splitlines()[0]
    found["python"] = platform.python_version()
    found["solvergen"] = __version__
    found["numpy"] = np.__version__
    for name in ("torch", "jax", "optax"):
        if name in sys.modules:
            found[name] = str(sys.modules[name].__version__)
    return found


def _processor() -> str:
    from solvergen.runtime.native.processor import processor

    models = [line.partition(":")[2].strip() for line in processor().splitlines() if "model name" in line]
    return models[0] if models else platform.machine()
