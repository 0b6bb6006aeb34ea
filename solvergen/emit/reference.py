"""The NumPy reference: one line an equation, from the typed program before any optimisation."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.emit.body import comment, guarded_lines
from solvergen.emit.equations import equation_lines
from solvergen.emit.identifiers import aliases
from solvergen.emit.imports import import_blocks, import_line
from solvergen.emit.prose import in_docstring, signature
from solvergen.emit.python_printer import OF_THE_LIBRARY, PythonPrinter
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.guards import Guard
from solvergen.ir.program import Assign, Role

HELPERS = (
    "absolute", "clip", "divide", "floor", "floor_divide", "maximum", "minimum", "power", "remainder", "sign",
    "sqrt", "where",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReferenceContext:
    """All that ``numpy/reference.py.j2`` places."""

    name: str
    source: str
    template: str
    equations: tuple[str, ...]
    imports: tuple[str, ...]
    signature: tuple[str, ...]
    returns: str
    body: tuple[str, ...]
    result: str
    real: str


def reference_text(unit: Unit) -> str:
    """``reference.py`` of ``unit``."""
    template = "numpy/reference.py.j2"
    program = unit.typed
    names = [s.name for s in program.symbols]
    other = aliases((*HELPERS, *OF_THE_LIBRARY.values(), "real", "rounded", "Any"), names)
    printer = PythonPrinter(other, real=other["real"])
    roles = {s.name: s.role for s in program.symbols}
    pairs: list[tuple[Guard, str]] = []
    for statement in program.statements:
        line = f"{statement.target} = {_value(statement, roles[statement.target], printer, other['rounded'])}"
        note = comment(statement, unit.source)
        place = f"{unit.source}:{statement.location.line}" if statement.location and note else ""
        pairs.append((statement.guard, f"{line}  # {place}" if place else line))
    buffers = [s.name for s in program.with_role(Role.PARAM, Role.GRAD, Role.STATE)]
    scalar_states = [s.name for s in program.with_role(Role.SCALAR_STATE)]
    hyperparameters = [s.name for s in program.with_role(Role.HYPERPARAMETER)]
    parameters = [f"{name}: {other['Any']}" for name in buffers]
    parameters += [f"{name}: float" for name in (*scalar_states, *hyperparameters, "t")]
    parameters += [f"{name}: bool" for name in program.options]
    parameters += [f"{other[name]}: {other['Any']}" for name in ("real", "rounded")]
    results = [name for name in buffers if name != "grad"] + scalar_states
    context = ReferenceContext(
        name=unit.spec.name,
        source=unit.source,
        template=template,
        equations=tuple(in_docstring(line) for line in equation_lines(unit.spec)),
        imports=import_blocks(
            (import_line("typing", ("Any",), other),),
            (import_line("solvergen.runtime.reference_math", printer.helpers, other),),
            (import_line(".._functions", printer.functions, other),),
        ),
        signature=tuple(signature("update", parameters, f"tuple[{other['Any']}, ...]")),
        returns=in_docstring(", ".join(results)),
        body=tuple(guarded_lines(pairs, lambda guard: guard.text(), "    ")),
        result=f"return {', '.join(results)}{',' if len(results) == 1 else ''}",
        real=other["real"],
    )
    return render(template, reference=context)


def _value(statement: Assign, role: Role, printer: PythonPrinter, rounded: str) -> str:
    alone = printer.value(statement.value)
    return f"{rounded}({alone})" if role is Role.PARAM else alone
