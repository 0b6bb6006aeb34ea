"""Draws that a seed alone decides, whatever else is loaded."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_caches: list[Any] = []  # of constants that were looked up, kept from one use to the next


@contextmanager
def by_seed_alone() -> Iterator[None]:
    """While the block runs Hypothesis draws no numbers that it finds in the modules that are loaded.

    It does since 6.131. A finding of one program could then not be drawn in another one, nor in a worker.
    There is no setting for it; in a version that does it in yet another way this does nothing.
    """
    try:
        providers: Any = importlib.import_module("hypothesis.internal.conjecture.providers")
        before = providers._get_local_constants, providers.CONSTANTS_CACHE
        nothing = type(providers._local_constants)()
        if not _caches:
            _caches.append(type(before[1])(1024))
    except (ImportError, AttributeError, TypeError):
        yield
        return
    providers._get_local_constants, providers.CONSTANTS_CACHE = lambda: nothing, _caches[0]
    try:
        yield
    finally:
        providers._get_local_constants, providers.CONSTANTS_CACHE = before
