"""The straight line from specs to the texts that are written.

    path -> Spec -> Program[typed] -> [optimised] -> Schedule -> artifacts

This half of solvergen reads specs and prints code; it never runs what it prints.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from solvergen.emit.host import host_text
from solvergen.emit.kernel import kernel_text
from solvergen.emit.library import c_functions, functions_called, numpy_functions
from solvergen.emit.package import class_text, package_text, wrapped_class_text
from solvergen.emit.reference import reference_text
from solvergen.emit.schema import schema_text
from solvergen.emit.unit import Unit
from solvergen.errors import CompilerBug, Diagnostic, SpecError
from solvergen.frontend.constraining import CONSTRAINTS, constraining
from solvergen.frontend.resolve import Analysis, analyse
from solvergen.frontend.surroundings import surroundings
from solvergen.frontend.wrapping import WRAPPERS, accumulation, wrapped
from solvergen.ir.verify import verify
from solvergen.passes import optimise
from solvergen.passes.schedule import schedule
from solvergen.spec.files import spec_files
from solvergen.spec.model import Spec
from solvergen.spec.reader import check_folder, examine

Paths = Sequence[str | os.PathLike[str]]
"""Spec files and folders of them."""

Artifacts = dict[str, str]
"""Text by path, relative to the package's folder, with forward slashes."""

Progress = Callable[[str, int, int], None]
"""Told the name of what is being compiled, how many are done, and how many there are."""


@dataclass(frozen=True, slots=True)
class Checked:
    """Specs as far as they could be read, by name, what was seen in them, and everything found."""

    specs: tuple[Spec, ...]
    analyses: tuple[Analysis, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """Is there an error, and not only warnings?"""
        return any(d.severity == "error" for d in self.diagnostics)


@dataclass(frozen=True)
class Compiled:
    """Optimizers through all passes, by name, and warnings about their specs."""

    units: tuple[Unit, ...]
    warnings: tuple[Diagnostic, ...]
    wrap: bool = True

    @cached_property
    def artifacts(self) -> Artifacts:
        """The package's texts. ``wrap``: those of wrapped optimizers too, and what runs beside optimizers."""
        if not self.wrap:
            return emit(self.units)
        around = {unit.spec.name: compile_wrapped(unit.spec) for unit in self.units}
        artifacts = emit(self.units, around)
        for spec in (accumulation(), *constraining()):
            unit = compile_spec(spec)
            artifacts |= {f"{spec.name}/{file}": text_of(unit) for file, text_of in EMITTERS.items()}
        return artifacts


def check(paths: Paths) -> Checked:
    """Everything that is wrong with the specs at ``paths``, equations included. Raises nothing for it."""
    seen: list[tuple[Spec, Analysis]] = []
    findings: list[Diagnostic] = []
    for path in paths:
        files, problem = spec_files(path)
        findings += [problem] if problem is not None else []
        for file in files:
            spec, found = examine(file)
            findings += found
            if spec is not None:
                analysis = analyse(spec)
                seen.append((analysis.spec, analysis))
                findings += analysis.diagnostics
    findings += check_folder(spec for spec, _ in seen)
    seen.sort(key=lambda pair: pair[0].name)
    return Checked(tuple(spec for spec, _ in seen), tuple(analysis for _, analysis in seen), tuple(findings))


def build(
    paths: Paths, *, wrap: bool = True, progress: Progress = lambda name, done, total: None
) -> Compiled:
    """Compile all specs at ``paths`` into one package. Raises SpecError with the findings of all of them.

    ``wrap``: whether the package is to have the wrapped optimizers too.
    """
    checked = check(paths)
    if checked.failed:
        raise SpecError(checked.diagnostics)
    units: list[Unit] = []
    for spec, analysis in zip(checked.specs, checked.analyses, strict=True):
        progress(spec.name, len(units), len(checked.specs))
        units.append(_compile(spec, analysis))
    return Compiled(tuple(units), checked.diagnostics, wrap)


def compile_wrapped(spec: Spec) -> Unit:
    """``spec``, which has no errors, with what wraps updates."""
    outer = wrapped(spec)
    analysis = analyse(outer)
    errors = [d for d in analysis.diagnostics if d.severity == "error"]
    if errors:
        raise CompilerBug(f"{spec.name} can't be wrapped: {errors[0].message}")
    return replace(_compile(outer, analysis), package="...")


def compile_spec(spec: Spec) -> Unit:
    """One spec through the front end and the passes. Raises SpecError."""
    analysis = analyse(spec)
    if any(d.severity == "error" for d in analysis.diagnostics):
        raise SpecError(analysis.diagnostics)
    return _compile(analysis.spec, analysis)


def _compile(spec: Spec, analysis: Analysis) -> Unit:
    assert analysis.parsed is not None
    assert analysis.typed is not None
    parsed = verify(analysis.parsed, "parsing")
    typed = verify(analysis.typed, "typing")
    optimised = optimise(typed)
    return Unit(spec, source_name(spec), parsed, typed, optimised, schedule(optimised), surroundings(spec))


EMITTERS: dict[str, Callable[[Unit], str]] = {
    "__init__.py": class_text,
    "schema.py": schema_text,
    "scalars.py": host_text,
    "reference.py": reference_text,
    "kernel.c": lambda unit: kernel_text(unit, "cpu/kernel.c.j2", c_functions),
    "kernel.cu": lambda unit: kernel_text(unit, "cuda/kernel.cu.j2", c_functions),
}
"""The files of one optimizer, by their names in its folder."""


WRAPPED = "wrapped"
"""The folder, beside an optimizer's files, of the same rule with what wraps updates."""


def emit(units: Sequence[Unit], around: Mapping[str, Unit] | None = None) -> Artifacts:
    """All files of the package. ``around``: the wrapped ones, by the name of the rule."""
    artifacts: Artifacts = {"__init__.py": package_text(units), "py.typed": ""}
    around = around or {}
    for unit in units:
        for file, text_of in EMITTERS.items():
            artifacts[f"{unit.spec.name}/{file}"] = text_of(unit)
        outer = around.get(unit.spec.name)
        if outer is not None:
            for file, text_of in EMITTERS.items():
                text = wrapped_class_text(unit, outer) if file == "__init__.py" else text_of(outer)
                artifacts[f"{unit.spec.name}/{WRAPPED}/{file}"] = text
    functions = frozenset[str]().union(*(functions_called(unit) for unit in units))
    if functions:
        artifacts["_functions.py"] = numpy_functions(sorted(functions))
    return artifacts


def source_name(spec: Spec) -> str:
    """The spec's file as generated text names it: its folder and name, the same on every machine.

    Characters that could end a comment or a string, or that a terminal hides, become underscores.
    """
    if spec.path == WRAPPERS:
        return "solvergen/frontend/wrapping.py"
    if spec.path == CONSTRAINTS:
        return "solvergen/frontend/constraining.py"
    path = Path(spec.path).resolve()
    return "/".join(_plain(part) for part in (path.parent.name, path.name))


def _plain(name: str) -> str:
    # In a locale that knows ASCII alone Python has surrogates for the other bytes of a file's name.
    name = name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join(c if c.isalnum() or c in "._-+ " else "_" for c in name)
