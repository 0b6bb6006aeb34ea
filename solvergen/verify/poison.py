"""Margins that nothing may even read, where AddressSanitizer is there to see it.

Without it a write beyond an array shows in its margin and a read doesn't. Under it (``SOLVERGEN_SANITIZE``,
see ``runtime/native/sanitizers.py``) the margins are marked as not to be touched while a step runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np

from solvergen.runtime.arrays import Array
from solvergen.runtime.buffers import address_of


@contextmanager
def untouchable(parts: Iterable[Array]) -> Iterator[None]:
    """While the block runs, each access of instrumented code to ``parts`` ends the process with a report.

    Host arrays only, whole groups of eight bytes before an array and every byte behind one; nothing where
    there is no AddressSanitizer. Only instrumented code and functions of the C library look at the marks.
    """
    sanitizer = _sanitizer()
    if sanitizer is None:
        yield
        return
    mark, unmark = sanitizer
    places = [(address_of(part), part.nbytes) for part in parts if isinstance(part, np.ndarray)]
    for place in places:
        mark(*place)
    try:
        yield
    finally:
        for place in places:
            unmark(*place)


@lru_cache(maxsize=1)
def _sanitizer() -> tuple[Any, Any] | None:
    """The functions that mark memory and take the mark away, if AddressSanitizer is in this process."""
    process = ctypes.CDLL(None)
    if not hasattr(process, "__asan_poison_memory_region"):
        return None
    functions = process.__asan_poison_memory_region, process.__asan_unpoison_memory_region
    for function in functions:
        function.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
        function.restype = None
    return functions
