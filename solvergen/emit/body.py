"""Lines of a kernel's body: guarded statements with the equations that they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from solvergen.emit.c_printer import CPrinter
from solvergen.ir.guards import Guard
from solvergen.ir.nodes import Expression
from solvergen.ir.program import Assign

OPTION_MACRO = "SG_OPTION_{}"


def macro_condition(guard: Guard) -> str | None:
    """The guard for the preprocessor; None if it always holds."""
    if guard.is_always:
        return None
    return guard.text(conjunction=" && ", disjunction=" || ", negation="!", name=OPTION_MACRO)


def body_lines(
    statements: Sequence[Assign],
    printer: CPrinter,
    indent: str,
    file: str,
    text: Callable[[Expression], str] | None = None,
) -> list[str]:
    """One declaration a statement, its equation above it, ``#if`` around what options decide.

    ``file`` is the spec's name in comments; ``text`` prints values (None: the printer does).
    """
    text = printer.text if text is None else text
    lines: list[str] = []
    chain: Guard | None = None  # the settings covered by the #if that is open
    for equation, guard, run in _runs(statements, file):
        goes_on = chain is not None and not guard.is_always and (chain & guard).is_never and not equation
        if chain is not None and not goes_on:
            lines.append("#endif")
            chain = None
        if equation:
            lines.append(f"{indent}// {equation}")
        if chain is not None:
            chain = chain | guard
            lines.append("#else" if chain.is_always else f"#elif {macro_condition(guard)}")
        elif not guard.is_always:
            lines.append(f"#if {macro_condition(guard)}")
            chain = guard
        lines.extend(f"{indent}{_declaration(s, printer, text)}" for s in run)
    if chain is not None:
        lines.append("#endif")
    return lines


def _declaration(statement: Assign, printer: CPrinter, text: Callable[[Expression], str]) -> str:
    kind = "int" if statement.value.type is not None and statement.value.type.is_bool else printer.real
    return f"const {kind} {printer.names[statement.target]} = {text(statement.value)};"


def _runs(statements: Sequence[Assign], file: str) -> Iterator[tuple[str, Guard, list[Assign]]]:
    """Neighbours of one guard and one equation together; the equation with the first of its runs."""
    said: set[str] = set()
    run: list[Assign] = []
    for statement in statements:
        if run and (run[0].guard != statement.guard or comment(run[0], file) != comment(statement, file)):
            yield _once(comment(run[0], file), said), run[0].guard, run
            run = []
        run.append(statement)
    if run:
        yield _once(comment(run[0], file), said), run[0].guard, run


def _once(text: str, said: set[str]) -> str:
    if text in said:
        return ""
    said.add(text)
    return text


def comment(statement: Assign, file: str) -> str:
    """The equation as written and its line in the spec; empty for what the compiler added."""
    if not statement.source:
        return ""
    place = place_of(statement, file)
    place = f"      {place}" if place else ""
    return f"{' '.join(statement.source.split())}{place}"


def place_of(statement: Assign, file: str) -> str:
    """The equation's file and line; empty for what no spec says."""
    if not statement.source or statement.location is None or statement.location.file.startswith("<"):
        return ""
    return f"{file}:{statement.location.line}"


def guarded_lines(
    pairs: Sequence[tuple[Guard, str]], condition: Callable[[Guard], str], indent: str
) -> list[str]:
    """Python lines under plain ``if``s, neighbours of one guard under one of them."""
    lines: list[str] = []
    opened: Guard | None = None
    alternative = False
    for guard, line in pairs:
        if guard.is_always:
            lines.append(f"{indent}{line}")
            opened, alternative = None, False
            continue
        if opened != guard:
            alternative = not alternative and opened is not None and guard == ~opened
            lines.append(f"{indent}else:" if alternative else f"{indent}if {condition(guard)}:")
            opened = guard
        lines.append(f"{indent}    {line}")
    return lines
