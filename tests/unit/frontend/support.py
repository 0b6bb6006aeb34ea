"""Equations with the place of the expected finding marked by « and »."""

from __future__ import annotations

from solvergen.errors import Diagnostic, Location, SpecError
from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import parse_condition, parse_equation
from solvergen.frontend.resolve import Analysis, analyse
from solvergen.ir.nodes import Expression
from solvergen.spec.model import Constraint, Hyperparameter, Option, Source, Spec, State, Statement, Text

HERE = Location("rule.yaml", 1, 1, 2)


def marked(text: str) -> tuple[str, int, int]:
    """The text without its marks, and the offsets that they stood at."""
    start, end = text.index("«"), text.index("»") - 1
    return text.replace("«", "").replace("»", ""), start, end


def found(text: str, *, condition: bool = False) -> tuple[Diagnostic, ...]:
    """What the parser says of an equation or a condition."""
    try:
        (parse_condition if condition else parse_equation)(Text.of(text))
    except SpecError as error:
        return error.diagnostics
    return ()


def value(text: str) -> Expression:
    """The expression that ``text`` is parsed to."""
    return parse_condition(Text.of(text))


def spec(
    *update: str | tuple[str, str],
    hyperparameters: str = "lr",
    options: str = "",
    derived: dict[str, str] | None = None,
    state: tuple[State, ...] = (),
    constraints: tuple[Constraint, ...] = (),
    extra: tuple[Hyperparameter, ...] = (),
) -> Spec:
    """A spec made by hand: each equation, or (when, equation), on a line of its own, from line 1."""
    statements = []
    for line, item in enumerate(update, start=1):
        when, equation = item if isinstance(item, tuple) else (None, item)
        statements.append(
            Statement(
                Text.of(equation, "rule.yaml", line, 1),
                None if when is None else Text.of(when, "rule.yaml", 100 + line, 1),
            )
        )
    switches = [Option(name) for name in options.split()]
    switches += [Option(name, Text.of(text, "rule.yaml", 200, 1)) for name, text in (derived or {}).items()]
    return Spec(
        name="rule",
        class_name="Rule",
        summary="A rule.",
        description="",
        references=(),
        hyperparameters=(*(Hyperparameter(name, 0.5) for name in hyperparameters.split()), *extra),
        options=tuple(switches),
        state=state,
        update=tuple(statements),
        constraints=constraints,
        conventions=(),
        counterparts=(),
        digest="",
        path="rule.yaml",
        source=Source.of("rule.yaml", ""),
        location=HERE,
    )


def analysed(*update: str | tuple[str, str], **parts: object) -> Analysis:
    """The analysis of such a spec."""
    return analyse(spec(*update, **parts))  # type: ignore[arg-type]


def codes(analysis: Analysis) -> list[str]:
    """The codes of everything found, in order."""
    return [d.code for d in analysis.diagnostics]


def places(analysis: Analysis) -> list[tuple[str, int, int]]:
    """Code, line and column of everything found, in order."""
    return [(d.code, d.location.line, d.location.column) for d in analysis.diagnostics]


def nothing() -> Findings:
    return Findings()
