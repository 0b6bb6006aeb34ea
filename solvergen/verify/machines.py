"""Backends by name, and whether one works here."""

from __future__ import annotations

from solvergen.errors import BackendUnavailable, OptimizerError, VerificationError
from solvergen.runtime import backends
from solvergen.runtime.backends.base import Backend

NAMES = backends.NAMES
"""The backends that ``solvergen verify`` runs unless told otherwise."""


def machine(backend: str | Backend) -> Backend:
    """The backend itself, made by its name if need be.

    Raises BackendUnavailable where it can't work here, VerificationError where there is none of this name.
    """
    if not isinstance(backend, str):
        if not isinstance(getattr(backend, "name", None), str) or not hasattr(backend, "prepare"):
            raise VerificationError(f"{backend!r:.60} is neither a backend nor the name of one")
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
