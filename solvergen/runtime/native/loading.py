"""Loads shared objects, also from where nothing may be executed."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path


def load_object(path: Path) -> ctypes.CDLL:
    """The library in the file ``path``.

    Temporary folders and home directories are often mounted so that nothing in them can be executed;
    then, on Linux, it is loaded from memory. Raises OSError where that doesn't help either.
    """
    try:
        return ctypes.CDLL(str(path))
    except OSError:
        if not hasattr(os, "memfd_create"):
            raise
        return _from_memory(path.read_bytes())


def _from_memory(data: bytes) -> ctypes.CDLL:
    descriptor = os.memfd_create("solvergen", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        # The descriptor of a loaded library stays open: the loader tells libraries apart by name, and a
        # number that is used again would give the old one.
        return ctypes.CDLL(f"/proc/self/fd/{descriptor}")
    except OSError:
        os.close(descriptor)
        raise
