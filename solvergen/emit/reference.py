"""The NumPy reference: one line an equation, from the typed program before any optimisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from solvergen.emit.body import guarded_lines, place_of
from solvergen.emit.equations import equation_lines
from solvergen.emit.identifiers import aliases
from solvergen.emit.imports import import_blocks, import_line
from solvergen.emit.prose import in_docstring, signature
from solvergen.emit.python_printer import OF_THE_LIBRARY, REDUCTION_HELPERS, PythonPrinter
from solvergen.emit.render import render
from solvergen.emit.shapes import Shapes
from solvergen.emit.unit import Unit
from solvergen.ir.describe import describe
from solvergen.ir.fresh import FreshNames
from solvergen.ir.guards import Guard, guard_of
from solvergen.ir.nodes import Call, Expression, GradientAt, Name, Reduce
from solvergen.ir.program import Assign, Role

HELPERS = (
    "absolute", "clip", "divide", "floor", "floor_divide", "maximum", "minimum", "power", "remainder", "sign",
    "spread", "sqrt", "where", *REDUCTION_HELPERS.values(), "over_all", "gradient",
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
    other = aliases((*HELPERS, *OF_THE_LIBRARY.values(), "real", "rounded", "Any", "Generator"), names)
    buffers = [s.name for s in program.with_role(Role.PARAM, Role.GRAD, Role.STATE)]
    shapes = Shapes(buffers)
    printer = PythonPrinter(other, real=other["real"], shapes=shapes)
    roles = {s.name: s.role for s in program.symbols}
    pairs: list[tuple[Guard, str]] = []
    whole = _Everywhere(printer, names, has_any=unit.schedule.yields)
    for statement in program.statements:
        statement = whole.apart(statement, pairs)
        if isinstance(statement.value, GradientAt):
            shapes.assign(statement)
            pairs.append((statement.guard, whole.evaluation(statement.value)))
            continue
        line = f"{statement.target} = {_value(statement, roles[statement.target], printer, other['rounded'])}"
        shapes.assign(statement)
        place = place_of(statement, unit.source)
        pairs.append((statement.guard, f"{line}  # {place}" if place else line))
    scalar_states = [s.name for s in program.with_role(Role.SCALAR_STATE)]
    scalar_states += [s.name for s in program.with_role(Role.SHARED_STATE)]
    hyperparameters = [s.name for s in program.with_role(Role.HYPERPARAMETER)]
    parameters = [f"{name}: {other['Any']}" for name in buffers]
    parameters += [f"{name}: float" for name in (*scalar_states, *hyperparameters, "t")]
    parameters += [f"{name}: bool" for name in program.options]
    parameters += [f"{other[name]}: {other['Any']}" for name in ("real", "rounded")]
    results = [name for name in buffers if name != "grad"] + scalar_states
    if program.writes_grad is not None:
        results.append("grad")
    context = ReferenceContext(
        name=unit.spec.name,
        source=unit.source,
        template=template,
        equations=tuple(in_docstring(line) for line in equation_lines(unit.spec)),
        imports=import_blocks(
            (
                import_line("collections.abc", ("Generator",) if whole.count else (), other),
                import_line("typing", ("Any",), other),
            ),
            (import_line("solvergen.runtime.reference_math", printer.helpers, other),),
            (import_line(f"{unit.package}_functions", printer.functions, other),),
        ),
        signature=tuple(signature("update", parameters, _returns(other, yields=bool(whole.count)))),
        returns=in_docstring(", ".join(results)),
        body=tuple(guarded_lines(pairs, lambda guard: guard.text(), "    ")),
        result=f"return {', '.join(results)}{',' if len(results) == 1 else ''}",
        real=other["real"],
    )
    return render(template, reference=context)


def _returns(other: Mapping[str, str], *, yields: bool) -> str:
    result = f"tuple[{other['Any']}, ...]"
    return f"{other['Generator']}[{other['Any']}, float, {result}]" if yields else result


class _Everywhere:
    """Takes reductions over all tensors out of equations: each becomes a ``yield``, numbered as they come.

    A tensor contributes where its options reach the reduction, whatever values then are chosen; so each
    stands before its equation, under the options that lead to it. Where no such reduction has an effect
    (``has_any`` is false), those that are there are of the tensor: nobody serves them, and their values are
    lost.
    """

    def __init__(self, printer: PythonPrinter, names: Sequence[str], *, has_any: bool) -> None:
        self.count = 0
        self._has_any = has_any
        self._printer = printer
        self._names = FreshNames((*names, *HELPERS))

    def apart(self, statement: Assign, lines: list[tuple[Guard, str]]) -> Assign:
        """The statement without them; ``lines`` gets them."""
        return replace(statement, value=self._apart(statement.value, statement.guard, lines))

    def evaluation(self, e: GradientAt) -> str:
        """The line that evaluates the gradient anew."""
        self.count += 1
        helper, at = self._printer.helper("gradient"), self._printer.text(e.at)
        return f"grad = yield {helper}({self.count - 1}, {at})"

    def _apart(self, e: Expression, guard: Guard, lines: list[tuple[Guard, str]]) -> Expression:
        guards = [guard] * len(e.operands)
        if isinstance(e, Call) and e.function == "where":
            chosen = guard_of(e.args[0], guard.options)
            if chosen is not None:
                guards[1:] = [guard & chosen, guard & ~chosen]
        operands = tuple(self._apart(o, g, lines) for o, g in zip(e.operands, guards, strict=True))
        if any(new is not old for new, old in zip(operands, e.operands, strict=True)):
            e = e.with_operands(operands)
        if not (isinstance(e, Reduce) and e.over_all):
            return e
        if not self._has_any:
            return replace(e, over_all=False)
        name = self._names.take(describe(e, f"{e.kind}_all"))
        arguments = [f'"{e.kind}"', str(self.count), *(self._printer.reduced(a) for a in e.args)]
        lines.append((guard, f"{name} = yield {self._printer.helper('over_all')}({', '.join(arguments)})"))
        self.count += 1
        return Name(name, type=e.type, location=e.location)


def _value(statement: Assign, role: Role, printer: PythonPrinter, rounded: str) -> str:
    alone = printer.value(statement.value)
    return f"{rounded}({alone})" if role is Role.PARAM else alone
