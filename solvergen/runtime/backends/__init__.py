"""The backends by name. Each is imported when it is asked for."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from solvergen.errors import BackendUnavailable, BackendWarning, OptimizerError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import lives_on_gpu
from solvergen.runtime.callers import level_of_program
from solvergen.runtime.naming import did_you_mean

NAMES = ("numpy", "cpu", "ptx", "cuda")
"""The backends that ``create`` knows."""


def create(name: str) -> Backend:
    """The backend ``name``.

    Raises BackendUnavailable where it can't work here (the text says what to install), OptimizerError
    where there is none of this name.
    """
    if name == "numpy":
        from solvergen.runtime.backends.numpy import NumpyBackend

        return NumpyBackend()
    if name == "cpu":
        from solvergen.runtime.backends.cpu import CpuBackend

        return CpuBackend()
    if name == "ptx":
        from solvergen.runtime.backends.ptx import PtxBackend

        return PtxBackend()
    if name == "cuda":
        from solvergen.runtime.backends.cuda import CudaBackend

        return CudaBackend()
    raise OptimizerError(f"no backend {name!r:.60}" + did_you_mean(name, ("auto", *NAMES)))


def automatic(arrays: Iterable[Any]) -> Backend:
    """The backend for where the arrays live: on a GPU cuda; on the host cpu, or numpy if there is no C
    compiler, with one warning a process that says so."""
    if any(map(lives_on_gpu, arrays)):
        return create("cuda")
    try:
        return create("cpu")
    except BackendUnavailable as unavailable:
        _warn_once(f"{unavailable}\nUntil then updates run in NumPy, several times slower.")
        return create("numpy")


def chosen(backend: str | Backend, arrays: Iterable[Any]) -> Backend:
    """The backend that a constructor was given: by name, as ``auto`` for these arrays, or made already.

    Raises OptimizerError for what is no backend, and as ``create`` does.
    """
    if isinstance(backend, str):
        return automatic(arrays) if backend == "auto" else create(backend)
    if not hasattr(backend, "prepare"):
        raise OptimizerError(f"backend must be a name such as 'auto' or 'numpy', not {backend!r:.60}")
    return backend


_warned = False


def _warn_once(message: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(message, BackendWarning, stacklevel=level_of_program())  # where the optimizer was made
