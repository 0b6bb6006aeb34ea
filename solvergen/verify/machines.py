"""Backends as verify needs them: whether one works here, and how drawn arrays get to where it wants them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from solvergen.errors import BackendUnavailable, OptimizerError, VerificationError
from solvergen.runtime import backends
from solvergen.runtime.backends.base import Backend

HostArray = np.ndarray[Any, np.dtype[Any]]

NAMES = backends.NAMES
"""The backends that ``solvergen verify`` runs unless told otherwise."""


class Memory(Protocol):
    """Where a backend's arrays lie."""

    def put(self, host: HostArray) -> Any:
        """A copy there; slices and reshapes of it are views."""
        ...

    def get(self, array: Any) -> HostArray:
        """A copy on the host."""
        ...

    def write(self, array: Any, host: HostArray) -> None:
        """Overwrite ``array``."""
        ...


class BackendMemory:
    """The memory of ``backend``; ``module`` is NumPy, or what stands for it on the backend's device."""

    def __init__(self, backend: Backend, module: Any) -> None:
        self._backend = backend
        self._module = module

    def put(self, host: HostArray) -> Any:
        """See ``Memory``."""
        return self._module.array(host, copy=True)

    def get(self, array: Any) -> HostArray:
        """See ``Memory``."""
        return self._backend.to_host(array)

    def write(self, array: Any, host: HostArray) -> None:
        """See ``Memory``."""
        self._backend.copy_in(array, host)


def memory_of(backend: Backend) -> Memory:
    """The memory in which ``backend`` wants its arrays."""
    if type(backend).__name__ == "CudaBackend":
        import cupy

        return BackendMemory(backend, cupy)
    return BackendMemory(backend, np)


def machine(backend: str | Backend) -> Backend:
    """The backend itself, made by its name if need be.

    Raises BackendUnavailable where it can't work here, VerificationError where there is none of this name.
    """
    if not isinstance(backend, str):
        return backend
    try:
        return backends.create(backend)
    except BackendUnavailable:
        raise
    except OptimizerError as unknown:
        raise VerificationError(str(unknown)) from None


def why_unavailable(backend: str | Backend) -> str | None:
    """Why a backend can't be used here, in one line or several; None if it can.

    Raises VerificationError where there is no backend of this name.
    """
    try:
        machine(backend)
    except BackendUnavailable as reason:
        return str(reason)
    return None
