"""solvergen: a compiler for optimizers.

Importing this package costs next to nothing; the compiler and the runtime are imported
from their own modules. ``solvergen.Wrappers`` is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvergen.runtime.wrappers import Wrappers as Wrappers

__version__ = "0.2.0"


def __getattr__(name: str) -> Any:
    if name != "Wrappers":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module("solvergen.runtime.wrappers").Wrappers
