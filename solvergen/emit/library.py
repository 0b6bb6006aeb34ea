"""The language's own functions, printed for each target from their one definition."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from solvergen.emit.c_printer import CPrinter, c_name
from solvergen.emit.imports import import_line
from solvergen.emit.python_printer import OF_THE_LIBRARY, PythonPrinter
from solvergen.emit.render import render
from solvergen.emit.unit import Unit
from solvergen.ir.library import BIT_FUNCTIONS, Body, library
from solvergen.ir.narrow import NARROW_BIT_FUNCTIONS
from solvergen.ir.nodes import Call, walk

_ON_BITS = (*BIT_FUNCTIONS, *NARROW_BIT_FUNCTIONS)
_DOUBLE_BITS = {
    "power_of_two": (
        "SG_FUNCTION double sg_power_of_two64(double k) {",
        "    return sg_from_bits((sg_u64)((sg_i64)k + 1023) << 52);",
        "}",
    ),
    "exponent": (
        "SG_FUNCTION double sg_exponent64(double x) {",
        "    return (double)((sg_i64)((sg_bits(x) >> 52) & 0x7ffull) - 1023);",
        "}",
    ),
    "significand": (
        "SG_FUNCTION double sg_significand64(double x) {",
        "    return sg_from_bits((sg_bits(x) & 0xfffffffffffffull) | 0x3ff0000000000000ull);",
        "}",
    ),
}
# The first two are without conversions between numbers and integers, which GPUs do at a quarter of the rate:
# the last bits of 1.5 * 2**23 + k are k, those of 2**23 + n are n.
_FLOAT_BITS = {
    "power_of_two": (
        "SG_FUNCTION float sg_power_of_two(float k) {",
        "    return sg_from_bits32((sg_bits32(k + 12582912.0f) << 23) + 0x3f800000u);",
        "}",
    ),
    "exponent": (
        "SG_FUNCTION float sg_exponent(float x) {",
        "    return sg_from_bits32(((sg_bits32(x) >> 23) & 0xffu) | 0x4b000000u) - 8388735.0f;",
        "}",
    ),
    "significand": (
        "SG_FUNCTION float sg_significand(float x) {",
        "    return sg_from_bits32((sg_bits32(x) & 0x7fffffu) | 0x3f800000u);",
        "}",
    ),
    "bits_as_number": (
        "SG_FUNCTION float sg_bits_as_number(float x) {",
        "    return (float)(int)(sg_bits32(x) & 0x7fffffffu);",
        "}",
    ),
    "number_with_bits": (
        "SG_FUNCTION float sg_number_with_bits(float bits) {",
        "    return sg_from_bits32((sg_u32)(int)bits);",
        "}",
    ),
    "leading_half": (
        "SG_FUNCTION float sg_leading_half(float x) {",
        "    return sg_from_bits32(sg_bits32(x) & 0xfffff000u);",
        "}",
    ),
}


_POWER_OF_SCALARS = (
    "SG_FUNCTION double sg_ipow64(double x, double n) {",
    "    if (n - n != 0.0) { /* as pow of IEEE 754 */",
    "        const int grows = (sg_abs64(x) > 1.0) == (n > 0.0);",
    "        const double limit = grows ? sg_from_bits(0x7ff0000000000000ull) : 0.0;",
    "        const int none = x != x || n != n;",
    "        const double other = none ? sg_from_bits(0x7ff8000000000000ull) : limit;",
    "        return x == 1.0 || (x == -1.0 && n == n) ? 1.0 : other;",
    "    }",
    "    double count = sg_abs64(n);",
    "    if (count == 0.0) return 1.0;",
    "    double factor = x;",
    "    double half = sg_floor64(count * 0.5);",
    "    while (half * 2.0 == count) {",
    "        factor = factor * factor;",
    "        count = half;",
    "        half = sg_floor64(count * 0.5);",
    "    }",
    "    double result = factor;",
    "    while (half != 0.0) {",
    "        count = half;",
    "        half = sg_floor64(count * 0.5);",
    "        factor = factor * factor;",
    "        if (half * 2.0 != count) result = result * factor;",
    "    }",
    "    return n < 0.0 ? 1.0 / result : result;",
    "}",
)
"""``ipow`` of scalars in stages: the products of ``solvergen.runtime.scalars.power``, in their order."""


def c_functions(names: tuple[str, ...], of_stages: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Lines of C for the functions ``names`` and all that they call, each before its first use.

    What is computed in float32 for float32 elements depends on the type that a kernel is compiled for.
    ``of_stages``: those that stages call, whose scalars are float64 in every kernel.
    """
    of_both = tuple(name for name in names if library()[name].narrow is not None)
    doubled = _needed(tuple(name for name in of_stages if name != "ipow"))
    in_double = [name for name in doubled if name in _ON_BITS or library()[name].wide]
    always = _needed((*(name for name in names if name not in of_both), *in_double))
    parts = [_c_function(name) for name in always]
    parts += [_c_function(name, stage=True) for name in doubled if name not in in_double]
    parts += [_POWER_OF_SCALARS] if "ipow" in of_stages else []
    if not of_both:
        return _separated(parts)
    doubles = [name for name in _needed(of_both) if name not in always]
    floats = _needed(of_both, narrow=True)
    callable_ = [name for name in floats if name not in _ON_BITS and library()[name].narrow is not None]
    aliases = [f"#define {c_name(n, wide=False)} {c_name(n, wide=True)}" for n in callable_]
    by_type = (
        ("#if SG_PARAM == 1",),
        *(_c_function(name) for name in doubles),
        tuple(aliases),
        ("#else",),
        *(_c_function(name, narrow=True) for name in floats),
        ("#endif",),
    )
    return _separated(parts + list(by_type))


def _separated(parts: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The parts with a blank line between two of them."""
    lines: list[str] = []
    for part in parts:
        lines.extend(("", *part) if lines else part)
    return tuple(lines)


def _c_function(name: str, *, narrow: bool = False, stage: bool = False) -> tuple[str, ...]:
    if name in _ON_BITS:
        return (_FLOAT_BITS if narrow else _DOUBLE_BITS)[name]
    definition = library()[name]
    body = definition.narrow if narrow else definition.body
    assert body is not None
    wide = stage or (definition.wide and not narrow)
    printer = CPrinter({}, real="float" if narrow else "double" if wide else "sg_real", stage=stage)
    kind = printer.real
    parameters = ", ".join(f"{kind} {parameter}" for parameter in definition.parameters)
    lines = [f"SG_FUNCTION {kind} {c_name(name, wide=wide)}({parameters}) {{"]
    for local, value in body[:-1]:
        of = "int" if value.type is not None and value.type.is_bool else kind
        lines.append(f"    const {of} {local} = {printer.text(value)};")
    lines.append(f"    return {printer.text(body[-1][1])};")
    return (*lines, "}")


@dataclass(frozen=True, slots=True)
class NumpyFunction:
    """One function of ``_functions.py``. ``narrow``: what is called for float32, empty if nothing else is."""

    signature: str
    name: str
    parameters: str
    lines: tuple[str, ...]
    narrow: str
    narrow_signature: str
    narrow_lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FunctionsContext:
    """All that ``numpy/functions.py.j2`` places."""

    template: str
    imports: tuple[str, ...]
    functions: tuple[NumpyFunction, ...]


def numpy_functions(names: Iterable[str]) -> str:
    """``_functions.py`` of a package: the functions ``names`` (of the language) in NumPy."""
    template = "numpy/functions.py.j2"
    wide = PythonPrinter({}, bare={**dict(zip(BIT_FUNCTIONS, BIT_FUNCTIONS, strict=True)), **OF_THE_LIBRARY})
    narrow_names = {name: f"{name}32" for name in _ON_BITS} | {
        name: f"_{name}32" for name, known in library().items() if known.narrow is not None
    }
    narrow = PythonPrinter({}, real="float32", bare=narrow_names, narrow=True)
    needed = _needed(tuple(names))
    functions = []
    for name in needed:
        if name in BIT_FUNCTIONS:
            continue
        definition = library()[name]
        parameters = ", ".join(definition.parameters)
        annotated = ", ".join(f"{p}: Any" for p in definition.parameters)
        own = OF_THE_LIBRARY[name]
        has_narrow = definition.narrow is not None
        functions.append(
            NumpyFunction(
                f"def {own}({annotated}) -> Any:",
                own,
                parameters,
                _numpy_lines(definition.body, "narrowed({})", wide),
                narrow_names.get(name, ""),
                f"def {narrow_names[name]}({annotated}) -> Any:" if has_narrow else "",
                _numpy_lines(definition.narrow, "{}", narrow) if definition.narrow else (),
            )
        )
    called = [n for n in _needed(tuple(names), narrow=True) if n in _ON_BITS]
    wide_bits = dict.fromkeys(("quiet", "widened", *(n for n in needed if n in BIT_FUNCTIONS)))
    narrow_bits = dict.fromkeys(narrow_names[name] for name in called)
    narrow_lines = [line for function in functions for line in function.narrow_lines]
    if narrow_lines:
        narrow_bits.setdefault("is_float32")
    if any("float32(" in line for line in narrow_lines):
        narrow_bits.setdefault("float32")
    imports = (
        import_line("solvergen.runtime.narrow_math", narrow_bits, {}),
        import_line("solvergen.runtime.reference_math", {**wide.helpers, **narrow.helpers}, {}),
        import_line("solvergen.runtime.wide_math", wide_bits, {}),
    )
    return render(
        template, library=FunctionsContext(template, tuple(i for i in imports if i), tuple(functions))
    )


def _numpy_lines(body: Body, returned: str, printer: PythonPrinter) -> tuple[str, ...]:
    *lines, last = [(local, printer.element(value)) for local, value in body]
    return (*(f"{local} = {value}" for local, value in lines), f"return {returned.format(last[1])}")


def functions_called(unit: Unit) -> frozenset[str]:
    """The functions of ``_functions.py`` that an optimizer's Python files call."""
    expressions = (*(s.value for s in unit.typed.statements), *unit.surroundings.expressions)
    calls = (node for e in expressions for node in walk(e) if isinstance(node, Call))
    return frozenset(call.function for call in calls if call.function in OF_THE_LIBRARY)


def _needed(names: tuple[str, ...], *, narrow: bool = False) -> tuple[str, ...]:
    """``names`` and all that they call, callees first, in the order of the library.

    ``narrow``: as the bodies of float32 call them, where there are such bodies.
    """
    wanted: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        if name in _ON_BITS:
            continue
        definition = library()[name]
        for _, value in (definition.narrow or definition.body) if narrow else definition.body:
            for node in walk(value):
                if isinstance(node, Call) and (node.function in library() or node.function in _ON_BITS):
                    pending.append(node.function)
    return tuple(n for n in (*_ON_BITS, *library()) if n in wanted)
