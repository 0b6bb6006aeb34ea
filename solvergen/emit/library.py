"""The language's own functions, printed for each target from their one definition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from solvergen.emit.c_printer import CPrinter
from solvergen.emit.imports import import_line
from solvergen.emit.python_printer import OF_THE_LIBRARY, PythonPrinter
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.library import BIT_FUNCTIONS, Definition, library
from solvergen.ir.nodes import Call, walk

_C_BITS = {
    "power_of_two": (
        "SG_FUNCTION double sg_power_of_two(double k) {",
        "    return sg_from_bits((sg_u64)((sg_i64)k + 1023) << 52);",
        "}",
    ),
    "exponent": (
        "SG_FUNCTION double sg_exponent(double x) {",
        "    return (double)((sg_i64)((sg_bits(x) >> 52) & 0x7ffull) - 1023);",
        "}",
    ),
    "significand": (
        "SG_FUNCTION double sg_significand(double x) {",
        "    return sg_from_bits((sg_bits(x) & 0xfffffffffffffull) | 0x3ff0000000000000ull);",
        "}",
    ),
}


def c_functions(names: tuple[str, ...]) -> tuple[str, ...]:
    """Lines of C for the functions ``names`` and all that they call, each before its first use."""
    lines: list[str] = []
    for name in _needed(names):
        if lines:
            lines.append("")
        lines.extend(_C_BITS[name] if name in BIT_FUNCTIONS else _c_function(library()[name]))
    return tuple(lines)


def _c_function(definition: Definition) -> list[str]:
    printer = CPrinter({}, wide=definition.wide)
    kind = "double" if definition.wide else "sg_real"
    parameters = ", ".join(f"{kind} {name}" for name in definition.parameters)
    lines = [f"SG_FUNCTION {kind} sg_{definition.name}({parameters}) {{"]
    for name, value in definition.body[:-1]:
        local = "int" if value.type is not None and value.type.is_bool else kind
        lines.append(f"    const {local} {name} = {printer.text(value)};")
    lines.append(f"    return {printer.text(definition.body[-1][1])};")
    return [*lines, "}"]


@dataclass(frozen=True, slots=True)
class NumpyFunction:
    """One function of ``_functions.py``."""

    signature: str
    name: str
    parameters: str
    lines: tuple[str, ...]
    result: str


@dataclass(frozen=True, slots=True)
class FunctionsContext:
    """All that ``numpy/functions.py.j2`` places."""

    template: str
    imports: tuple[str, ...]
    functions: tuple[NumpyFunction, ...]


def numpy_functions(names: Iterable[str]) -> str:
    """``_functions.py`` of a package: the functions ``names`` (of the language) in NumPy."""
    template = "numpy/functions.py.j2"
    helpers: dict[str, None] = {}
    bits: dict[str, None] = {"quiet": None, "widened": None}
    functions = []
    for name in _needed(tuple(names)):
        if name in BIT_FUNCTIONS:
            bits.setdefault(name)
            continue
        definition = library()[name]
        printer = PythonPrinter({}, bare=frozenset((*BIT_FUNCTIONS, *OF_THE_LIBRARY)))
        lines = tuple(f"{local} = {printer.text(value)}" for local, value in definition.body)
        helpers.update(printer.helpers)
        own = OF_THE_LIBRARY[name]
        parameters = ", ".join(definition.parameters)
        signature = f"def {own}({', '.join(f'{p}: Any' for p in definition.parameters)}) -> Any:"
        functions.append(NumpyFunction(signature, own, parameters, lines, definition.result))
    imports = (
        import_line("solvergen.runtime.reference_math", helpers, {}),
        import_line("solvergen.runtime.wide_math", bits, {}),
    )
    return render(
        template, library=FunctionsContext(template, tuple(i for i in imports if i), tuple(functions))
    )


def functions_called(unit: Unit) -> frozenset[str]:
    """The functions of ``_functions.py`` that an optimizer's Python files call."""
    expressions = (*(s.value for s in unit.typed.statements), *unit.surroundings.expressions)
    calls = (node for e in expressions for node in walk(e) if isinstance(node, Call))
    return frozenset(call.function for call in calls if call.function in OF_THE_LIBRARY)


def _needed(names: tuple[str, ...]) -> tuple[str, ...]:
    """``names`` and all that they call, callees first, in the order of the library."""
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        if name in BIT_FUNCTIONS:
            continue
        for _, value in library()[name].body:
            for node in walk(value):
                if isinstance(node, Call) and (node.function in library() or node.function in BIT_FUNCTIONS):
                    pending.append(node.function)
    return tuple(n for n in (*BIT_FUNCTIONS, *library()) if n in wanted)
