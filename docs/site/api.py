"""A page for each public module: everything that it exports, by Sphinx's autodoc."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

from solvergen.errors import MissingLibrary

MODULES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "runtime",
        "Optimizers at run time",
        (
            "solvergen.runtime.optimizer",
            "solvergen.runtime.wrappers",
            "solvergen.runtime.wrapping",
            "solvergen.constraints",
            "solvergen.deriving",
            "solvergen.runtime.definition",
        ),
    ),
    ("snapshots", "Snapshots", ("solvergen.runtime.snapshots",)),
    ("solver", "The Solver", ("solvergen.solver", "solvergen.solver.training.events")),
    ("nets", "Nets", ("solvergen.solver.net.protocol", "solvergen.adapters.torch_net")),
    ("solver-files", "The Solver's files", ("solvergen.solver.files",)),
    ("verify", "Verification", ("solvergen.verify", "solvergen.verify.static")),
    ("bench", "Benchmarks", ("solvergen.bench",)),
    ("compiler", "The compiler", ("solvergen.compiler", "solvergen.stages", "solvergen.summary")),
    ("errors", "Errors", ("solvergen.errors",)),
)
"""A page's name and title, and the modules on it."""

_VALUE = 80  # characters of a constant that are shown


def api_index() -> str:
    """The list of the pages, in Markdown."""
    rows = [f"* [{title}]({page}.md): `{'`, `'.join(modules)}`" for page, title, modules in MODULES]
    return "\n".join(
        ["# API", "", *rows, "", "```{toctree}", ":hidden:", "", *(page for page, _, _ in MODULES), "```", ""]
    )


def api_page(title: str, modules: tuple[str, ...]) -> str:
    """One page, in Markdown."""
    lines = [f"# {title}"]
    for name in modules:
        try:
            module = importlib.import_module(name)
        except MissingLibrary as missing:
            lines += ["", f"## {name}", "", f"Not on this page, which was built without it: {missing}."]
            continue
        summary = (module.__doc__ or "").split("\n\n")[0]
        lines += ["", f"## {name}", "", "```{eval-rst}", *summary.splitlines()]
        lines += ["", f".. currentmodule:: {name}"]
        for member in exported(module):
            lines += ["", *_directive(module, member)]
        lines.append("```")
    return "\n".join(lines) + "\n"


def exported(module: ModuleType) -> list[str]:
    """Public names: those of ``__all__`` (errors have a page of their own), else what the module defines."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if _home(getattr(module, name)) != "solvergen.errors"]
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and _home(value) == module.__name__
        if inspect.isclass(value) or inspect.isfunction(value)
    ]


def _home(value: object) -> str:
    """The module that defines a class or a function."""
    return str(getattr(value, "__module__", ""))


def _directive(module: ModuleType, name: str) -> list[str]:
    value = getattr(module, name)
    if inspect.isclass(value):
        if issubclass(value, BaseException):
            return [f".. autoexception:: {name}", "   :members:", "   :show-inheritance:"]
        return [f".. autoclass:: {name}", "   :members:"]
    if inspect.isfunction(value):
        return [f".. autofunction:: {name}"]
    # What Sphinx finds for another value is the docstring of its type.
    text = repr(value)
    return [f".. data:: {name}", *([f"   :value: {text}"] if len(text) <= _VALUE else [])]
