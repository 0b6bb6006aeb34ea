"""The straight line from specs to the texts that are written.

    path -> Spec -> Program[typed] -> [optimised] -> Schedule -> artifacts

This half of solvergen reads specs and prints code; it never runs what it prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from solvergen.emit.host import host_text
from solvergen.emit.kernel import kernel_text
from solvergen.emit.library import c_functions, numpy_functions
from solvergen.emit.package import class_text, package_text
from solvergen.emit.reference import reference_text
from solvergen.emit.schema import schema_text
from solvergen.emit.unit import ScalarTexts, Unit
from solvergen.errors import Diagnostic, SpecError
from solvergen.frontend.resolve import analyse, scalar_expression
from solvergen.ir.nodes import Call, Expression, Number, walk
from solvergen.ir.types import SCALAR_REAL
from solvergen.ir.verify import verify
from solvergen.passes import optimise
from solvergen.passes.schedule import schedule
from solvergen.spec.model import Spec, Text
from solvergen.spec.reader import check_folder, examine, spec_files

Paths = Sequence[str | os.PathLike[str]]
"""Spec files and folders of them."""

Artifacts = dict[str, str]
"""Text by path, relative to the package's folder, with forward slashes."""

Progress = Callable[[str, int, int], None]
"""Told the name of what is being compiled, how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Specs as far as they could be read, by name, and everything found in any of them."""

    specs: tuple[Spec, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """Is there an error, and not only warnings?"""
        return any(d.severity == "error" for d in self.diagnostics)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A build: the optimizers, the package's texts, and warnings about the specs."""

    units: tuple[Unit, ...]
    artifacts: Artifacts
    warnings: tuple[Diagnostic, ...]


def check(paths: Paths) -> Checked:
    """Everything that is wrong with the specs at ``paths``, equations included. Raises nothing for it."""
    specs: list[Spec] = []
    findings: list[Diagnostic] = []
    for path in paths:
        files, problem = spec_files(path)
        findings += [problem] if problem is not None else []
        for file in files:
            spec, found = examine(file)
            findings += found
            if spec is not None:
                specs.append(spec)
                findings += analyse(spec).diagnostics
    findings += check_folder(specs)
    return Checked(tuple(sorted(specs, key=lambda spec: spec.name)), tuple(findings))


def build(paths: Paths, *, progress: Progress = lambda name, done, total: None) -> Compiled:
    """Compile all specs at ``paths`` into one package. Raises SpecError with the findings of all of them."""
    checked = check(paths)
    if checked.failed:
        raise SpecError(checked.diagnostics)
    units = []
    for done, spec in enumerate(checked.specs):
        progress(spec.name, done, len(checked.specs))
        units.append(compile_spec(spec))
    return Compiled(tuple(units), emit(units), checked.diagnostics)


def compile_spec(spec: Spec) -> Unit:
    """One spec through the front end and the passes. Raises SpecError."""
    analysis = analyse(spec)
    if analysis.typed is None or any(d.severity == "error" for d in analysis.diagnostics):
        raise SpecError(analysis.diagnostics)
    assert analysis.parsed is not None
    parsed = verify(analysis.parsed, "parsing")
    typed = verify(analysis.typed, "typing")
    optimised = optimise(typed)
    return Unit(spec, source_name(spec), parsed, typed, optimised, schedule(optimised), _scalar_texts(spec))


EMITTERS: dict[str, Callable[[Unit], str]] = {
    "__init__.py": class_text,
    "schema.py": schema_text,
    "scalars.py": host_text,
    "reference.py": reference_text,
    "kernel.c": lambda unit: kernel_text(unit, "cpu/kernel.c.j2", c_functions),
    "kernel.cu": lambda unit: kernel_text(unit, "cuda/kernel.cu.j2", c_functions),
}
"""The files of one optimizer, by their names in its folder."""


def emit(units: Sequence[Unit]) -> Artifacts:
    """All files of the package."""
    artifacts: Artifacts = {"__init__.py": package_text(units), "py.typed": ""}
    for unit in units:
        for file, text_of in EMITTERS.items():
            artifacts[f"{unit.spec.name}/{file}"] = text_of(unit)
    functions = {name for unit in units for name in _wide_functions(unit)}
    if functions:
        artifacts["functions.py"] = numpy_functions(sorted(functions))
    return artifacts


def source_name(spec: Spec) -> str:
    """The spec's file as generated text names it: its folder and name, the same on every machine."""
    path = Path(spec.path).resolve()
    return f"{path.parent.name}/{path.name}"


def _scalar_texts(spec: Spec) -> ScalarTexts:
    """The conditions and expressions of a spec outside its update."""
    return ScalarTexts(
        derived_options=tuple(
            (o.name, scalar_expression(o.default, spec)) for o in spec.options if isinstance(o.default, Text)
        ),
        constraints=tuple(
            (
                scalar_expression(c.when, spec) if c.when is not None else None,
                scalar_expression(c.that, spec),
                c.message,
            )
            for c in spec.constraints
        ),
        initial=tuple((s.name, None if s.copies_param else _initial(s.init, spec)) for s in spec.state),
    )


def _initial(init: float | Text, spec: Spec) -> Expression:
    if isinstance(init, Text):
        return scalar_expression(init, spec)
    return Number(init, init.is_integer(), type=SCALAR_REAL)


def _wide_functions(unit: Unit) -> Iterable[str]:
    """Functions of the language that this optimizer's Python files import from ``functions.py``."""
    expressions = [s.value for s in unit.typed.statements]
    expressions += [e for _, e in unit.scalars.derived_options]
    expressions += [e for when, that, _ in unit.scalars.constraints for e in (when, that) if e is not None]
    expressions += [e for _, e in unit.scalars.initial if e is not None]
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, Call) and node.function in ("exp", "log", "tanh", "pow"):
                yield node.function
