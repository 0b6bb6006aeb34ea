"""Packages built from specs while the tests run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from solvergen import output
from solvergen.compiler import build


def built_package(specs: Sequence[Path | str], folder: Path) -> ModuleType:
    """The package that ``specs`` compile to, written to ``folder`` and imported under its name."""
    output.write(folder, build(list(specs), wrap=False).artifacts)
    spec = importlib.util.spec_from_file_location(
        folder.name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[folder.name] = module
    spec.loader.exec_module(module)
    return module
