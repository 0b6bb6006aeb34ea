"""The importable package: one class an optimizer, and the ``__init__.py`` that offers them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvergen.emit.equations import equation_lines
from solvergen.emit.prose import in_docstring, paragraph
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.spec.model import Hyperparameter, Reference, Spec, State

_PARAMS = """params: an array, a list of arrays, a mapping of names to arrays, or a list of groups (dicts with
a key params, hyperparameters of their own, lr_mult and decay_mult). Updated in place."""


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


@dataclass(frozen=True, slots=True)
class PackageContext:
    """All that ``package/init.py.j2`` places."""

    template: str
    optimizers: tuple[tuple[str, str, str], ...]
    """(class, module, summary), sorted by class"""


def class_text(unit: Unit) -> str:
    """``<name>/__init__.py``: the optimizer's class."""
    template = "package/optimizer.py.j2"
    spec = unit.spec
    context = ClassContext(
        name=spec.name,
        class_name=spec.class_name,
        source=unit.source,
        template=template,
        module_doc=in_docstring(" ".join(spec.summary.split())),
        doc=tuple(_docstring(spec)),
        hyperparameters=tuple(
            ArgumentContext(h.name, "float", repr(h.default)) for h in spec.hyperparameters
        ),
        options=tuple(
            ArgumentContext(
                o.name, "bool | None" if o.is_derived else "bool", "None" if o.is_derived else repr(o.default)
            )
            for o in spec.options
        ),
    )
    return render(template, optimizer=context)


def package_text(units: Sequence[Unit]) -> str:
    """The package's ``__init__.py``, which imports an optimizer when it is first asked for."""
    template = "package/init.py.j2"
    optimizers = tuple(
        sorted(
            (u.spec.class_name, u.spec.name, in_docstring(" ".join(u.spec.summary.split()))) for u in units
        )
    )
    return render(template, package=PackageContext(template, optimizers))


def _docstring(spec: Spec) -> list[str]:
    lines = [in_docstring(" ".join(spec.summary.split()))]
    for block in spec.description.split("\n\n"):
        if block.strip():
            lines += ["", *paragraph(block)]
    lines += ["", "The update, for each parameter (``t`` counts its updates, from 1)::", ""]
    lines += [f"    {in_docstring(line)}" for line in equation_lines(spec)]
    lines += ["", "Args:", *paragraph(_PARAMS, "    ", "    ")]
    for h in spec.hyperparameters:
        lines += paragraph(f"{h.name}: {_sentence(h.doc, _range(h))}", "    ", "    ")
    for o in spec.options:
        derived = f"by default: {o.default}" if o.is_derived else ""
        lines += paragraph(f"{o.name}: {_sentence(o.doc, derived)}", "    ", "    ")
    lines += paragraph("backend: numpy, cpu, cuda, or auto: where the arrays live.", "    ", "    ")
    lines += paragraph(
        "nonfinite: what gradients with infinities or NaN do: propagate, skip (the step) or raise.",
        "    ",
        "    ",
    )
    if spec.state:
        lines += ["", "State:"]
        for state in spec.state:
            lines += paragraph(f"{state.name}: {_sentence(state.doc, _state(state))}", "    ", "    ")
    if spec.conventions:
        lines += ["", "Conventions:"]
        for convention in spec.conventions:
            lines += paragraph(f"- {convention}", "    ", "  ")
    if spec.references:
        lines += ["", "References:"]
        for reference in spec.references:
            lines += paragraph(_citation(reference), "    ", "    ")
    return lines


def _sentence(doc: str, detail: str) -> str:
    doc = " ".join(doc.split()).rstrip(".")
    return f"{doc} ({detail})." if doc and detail else f"{doc or detail}."


def _range(h: Hyperparameter) -> str:
    return h.range_text


def _state(state: State) -> str:
    shape = "one float a parameter" if state.is_scalar else "shaped as the parameter, of its compute type"
    init = state.init if isinstance(state.init, float) else str(state.init)
    return f"{shape}; begins at {init}{f'; only when {state.when}' if state.when else ''}"


def _citation(r: Reference) -> str:
    parts = [
        r.authors,
        f"{r.title} ({r.year})" if r.year else r.title,
        f"arXiv:{r.arxiv}" if r.arxiv else None,
    ]
    parts += [f"doi:{r.doi}" if r.doi else None, r.url, r.note]
    return ". ".join(p.rstrip(".") for p in parts if p) + "."
