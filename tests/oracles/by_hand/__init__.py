"""Rules written out in NumPy float64 from their papers: one module a spec, found by name.

A module has ``start(w, **settings) -> dict`` (the state of a tensor before its first update) and
``step(w, g, state, t, **settings) -> w`` (the new value; ``state`` is updated in place). ``settings`` are the
hyperparameters in force and the options, under the names of the spec; states that are called as in the
spec are compared, too. A module may have ``CASES`` of its own, beside those of ``tests/golden/cases``.

A rule that looks over all tensors also has ``together(tensors, shared, **settings) -> dict``, called before
the tensors' ``step``, with the value, gradient and state of each that takes part; what it returns is among
the settings of each ``step``. Its shared states are those of ``start_together(**settings) -> dict``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

NAMES = tuple(sorted(module.name for module in iter_modules(__path__)))
"""Specs whose rule is written out here."""


def of(name: str) -> ModuleType:
    """The module of a spec's rule."""
    return import_module(f"{__name__}.{name}")
