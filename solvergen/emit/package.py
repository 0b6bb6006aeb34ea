"""The importable package: one class an optimizer, and the ``__init__.py`` that offers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvergen.emit.docstring import docstring_lines
from solvergen.emit.prose import in_docstring
from solvergen.emit.render import render
from solvergen.emit.unit import Unit


@dataclass(frozen=True, slots=True)
class ArgumentContext:
    """A keyword of the constructor."""

    name: str
    annotation: str
    default: str


@dataclass(frozen=True, slots=True)
class ClassContext:
    """All that ``package/optimizer.py.j2`` places."""

    name: str
    class_name: str
    source: str
    template: str
    module_doc: str
    doc: tuple[str, ...]
    hyperparameters: tuple[ArgumentContext, ...]
    options: tuple[ArgumentContext, ...]
    has_blocks: bool


@dataclass(frozen=True, slots=True)
class PackageContext:
    """All that ``package/init.py.j2`` places."""

    template: str
    optimizers: tuple[tuple[str, str, str], ...]
    """(class, module, summary), sorted by module"""


def takes_blocks(unit: Unit) -> bool:
    """Whether the constructor takes ``blocks``."""
    return unit.schedule.view == "blocks"


def class_text(unit: Unit) -> str:
    """``<name>/__init__.py``: the optimizer's class."""
    template = "package/optimizer.py.j2"
    spec = unit.spec
    has_blocks = takes_blocks(unit)
    context = ClassContext(
        name=spec.name,
        class_name=spec.class_name,
        source=unit.source,
        template=template,
        module_doc=in_docstring(" ".join(spec.summary.split())),
        doc=tuple(docstring_lines(spec, has_blocks=has_blocks)),
        hyperparameters=tuple(
            ArgumentContext(h.name, "float", repr(h.default)) for h in spec.hyperparameters
        ),
        options=tuple(
            ArgumentContext(
                o.name, "bool | None" if o.is_derived else "bool", "None" if o.is_derived else repr(o.default)
            )
            for o in spec.options
        ),
        has_blocks=has_blocks,
    )
    return render(template, optimizer=context)


@dataclass(frozen=True, slots=True)
class WrappedContext:
    """All that ``package/wrapped.py.j2`` places."""

    name: str
    class_name: str
    wrapped_name: str
    source: str
    template: str
    hyperparameters: tuple[str, ...]


def wrapped_class_text(unit: Unit, outer: Unit) -> str:
    """``<name>/wrapped/__init__.py``: the class of ``unit`` with what wraps updates."""
    template = "package/wrapped.py.j2"
    own = {h.name for h in unit.spec.hyperparameters}
    added = tuple(h.name for h in outer.spec.hyperparameters if h.name not in own)
    context = WrappedContext(
        unit.spec.name, unit.spec.class_name, outer.spec.class_name, unit.source, template, added
    )
    return render(template, optimizer=context)


def package_text(units: Sequence[Unit]) -> str:
    """The package's ``__init__.py``, which imports an optimizer when it is first asked for."""
    template = "package/init.py.j2"
    optimizers = tuple(
        (u.spec.class_name, u.spec.name, in_docstring(" ".join(u.spec.summary.split())))
        for u in sorted(units, key=lambda unit: unit.spec.name)
    )
    return render(template, package=PackageContext(template, optimizers))
