"""Gradients in whose arrays the update is left: ``Wrappers(write_update=True)``."""

from __future__ import annotations

from collections.abc import Sequence

from solvergen.errors import ArrayError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.buffers import writable
from solvergen.runtime.spans import overlapping


def check_gradients(backend: Backend, names: Sequence[str], gradients: Sequence[object]) -> None:
    """Raise ArrayError for gradients that no update can be written to: read-only ones, and such as share
    memory."""
    present = [(name, g) for name, g in zip(names, gradients, strict=True) if g is not None]
    for name, gradient in present:
        writable(gradient, f"the gradient of {name!r}, which the update is to be written to,")
    found = overlapping((*backend.span_of(gradient), name) for name, gradient in present)
    if found is not None:
        raise ArrayError(
            f"the gradients of {found[0]!r} and {found[1]!r} share memory, and the update of each is to "
            "be written there; give each an array of its own"
        )
