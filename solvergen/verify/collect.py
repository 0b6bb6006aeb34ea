"""Which optimizers are verified: the shipped ones, a package's, or ones built from specs on the spot."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from solvergen.errors import VerificationError
from solvergen.runtime.definition import Definition
from solvergen.runtime.importing import import_package
from solvergen.runtime.naming import did_you_mean
from solvergen.runtime.wrapped_classes import wrapped_class

if TYPE_CHECKING:
    import os

    from solvergen.runtime.optimizer import Optimizer

Optimizers = Mapping[str, "type[Optimizer]"]
"""Optimizer classes by the names of their specs, sorted."""


def shipped() -> Optimizers:
    """The optimizers that come with solvergen."""
    return optimizers_in(importlib.import_module("solvergen.optimizers"))


def optimizers_in(package: ModuleType) -> Optimizers:
    """All optimizers of a package that ``solvergen build`` wrote.

    Raises ``VerificationError`` if it isn't one.
    """
    names = getattr(package, "__all__", ()) if isinstance(package, ModuleType) else ()
    classes = [getattr(package, name) for name in names]
    if not classes or not all(isinstance(getattr(cls, "definition", None), Definition) for cls in classes):
        raise VerificationError(f"{package!r:.80} is not a package that solvergen build wrote")
    return {cls.definition.name: cls for cls in sorted(classes, key=lambda cls: cls.definition.name)}


def select(optimizers: Optimizers, names: Sequence[str]) -> Optimizers:
    """Those asked for, by the name of the spec or of the class; all if ``names`` is empty.

    Raises ``VerificationError`` for names that there aren't.
    """
    if not names:
        return optimizers
    known = {cls.definition.class_name: name for name, cls in optimizers.items()} | {n: n for n in optimizers}
    chosen = {}
    for name in names:
        if name not in known:
            raise VerificationError(f"no optimizer {name!r}" + did_you_mean(name, known, shown=optimizers))
        chosen[known[name]] = optimizers[known[name]]
    return dict(sorted(chosen.items()))


def wrapped_of(optimizers: Optimizers) -> Optimizers:
    """The wrapped ones beside these, by the names of their definitions.

    Raises OptimizerError for a package that was built without them.
    """
    found = [wrapped_class(cls) for cls in optimizers.values()]
    return {cls.definition.name: cls for cls in found}


_imported = 0


@contextmanager
def built_from(specs: Sequence[str | os.PathLike[str]], *, wrap: bool = False) -> Iterator[Optimizers]:
    """The optimizers of spec files and folders, compiled into a temporary package; ``wrap``: with the wrapped
    ones beside them (``wrapped_of``).

    Kernels are compiled from its files when they are first used, so the classes are of use inside the
    ``with`` only. Raises ``SpecError`` with all that is wrong with the specs.
    """
    # Only here, so that verifying a package needs nothing of the compile half.
    from solvergen import compiler

    if not specs:
        raise VerificationError("built_from needs a spec or a folder of them")
    built = compiler.build(specs, wrap=wrap)
    # The specs' own texts go along, under the names by which generated text knows them: a replay file
    # holds the text of its spec.
    texts = {unit.source: Path(unit.spec.path).read_text(encoding="utf-8-sig") for unit in built.units}
    with imported({**texts, **built.artifacts}) as optimizers:
        yield optimizers


@contextmanager
def imported(artifacts: Mapping[str, str]) -> Iterator[Optimizers]:
    """The optimizers of a package given as texts by relative path, written to a temporary folder."""
    global _imported
    _imported += 1
    name = f"solvergen_verify_{_imported}"
    with tempfile.TemporaryDirectory(prefix="solvergen-verify-") as folder:
        for path, text in artifacts.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        try:
            yield optimizers_in(import_package(name, Path(folder)))
        finally:
            for module in [m for m in sys.modules if m == name or m.startswith(f"{name}.")]:
                del sys.modules[module]
