"""Compilers' outputs, kept by content: looking at all kernels again takes seconds instead of minutes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from solvergen.runtime.cache_folder import open_cache

_FORMAT = 1
_SUFFIX = ".txt"


def kept(about: Any, make: Callable[[], str]) -> str:
    """The text of ``make``, or what it was when it was made before.

    ``about``: all that decides it, as plain data.
    """
    folder = open_cache("static")
    key = hashlib.sha256(json.dumps([_FORMAT, about]).encode()).hexdigest()
    found = folder.load(key, _SUFFIX)
    if found is not None:
        return found.decode()
    text = make()
    folder.store(key, text.encode(), _SUFFIX)
    return text
