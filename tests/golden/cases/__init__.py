"""One module an optimizer: ``CASES``, and ``run(case)``, which makes its trajectory with another package.

Modules are found by their names, which are those of the specs; so are the files, ``../NAME.npz``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

NAMES = tuple(sorted(module.name for module in iter_modules(__path__)))
"""Specs that have golden trajectories."""


def of(name: str) -> ModuleType:
    """The module of a spec's cases."""
    return import_module(f"{__name__}.{name}")
