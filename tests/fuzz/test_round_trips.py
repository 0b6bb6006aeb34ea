"""Texts of drawn specs through every form that the compiler has for them, and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from solvergen import output, stages
from solvergen.compiler import build, compile_spec
from solvergen.frontend.parse import parse_condition
from solvergen.ir.nodes import (
    Binary,
    Call,
    Compare,
    Expression,
    Extent,
    GradientAt,
    Logic,
    Name,
    Number,
    Reduce,
    Unary,
)
from solvergen.ir.schedule_text import schedule_text
from solvergen.ir.text import expression_text, program_text
from solvergen.spec.model import Text
from solvergen.spec.reader import read_spec
from solvergen.summary import summary_of
from solvergen.verify.fuzzing.reading import read, read_equation
from solvergen.verify.fuzzing.rule import AGAIN, Assignment, Rule, rule_of
from solvergen.verify.fuzzing.spec import DrawnSpec
from solvergen.verify.fuzzing.strategies import specs
from solvergen.verify.fuzzing.style import PLAIN
from solvergen.verify.fuzzing.terms import AXES, GRADIENT, REDUCTIONS, Term
from solvergen.verify.fuzzing.texts import written
from solvergen.verify.fuzzing.yaml_text import yaml_of
from tests.fuzz.built import spec_file, styles
from tests.fuzz.running import fuzz

Shape = tuple[object, ...]


def _shape_of_term(term: Term) -> Shape:
    """A term as nested tuples; signs before numbers belong to the numbers, as in the compiler's IR."""
    if term.op == "number":
        return "number", float(term.text).hex(), term.text.isdigit()
    if term.op == "name":
        return "name", term.text
    args = tuple(_shape_of_term(arg) for arg in term.args)
    if term.op == "neg" and args[0][0] == "number":
        _, digits, whole = args[0]
        value = -float.fromhex(str(digits))
        return "number", value.hex(), bool(whole) and value != 0
    return (term.op, term.text, *args) if term.op in REDUCTIONS else (term.op, *args)


def _shape_of_ir(e: Expression) -> Shape:
    if isinstance(e, Number):
        return "number", e.value.hex(), e.integral
    if isinstance(e, Name):
        return "name", e.name
    if isinstance(e, Extent):
        return "name", AXES
    if isinstance(e, GradientAt):
        return (GRADIENT,)
    args = tuple(_shape_of_ir(operand) for operand in e.operands)
    if isinstance(e, Unary):
        return "neg" if e.op == "-" else e.op, *args
    if isinstance(e, Call):
        return e.function, *args
    if isinstance(e, Reduce):
        return e.kind, "all" if e.over_all else e.along, *args
    assert isinstance(e, (Binary, Compare, Logic))
    return e.op, *args


def _equations(spec: DrawnSpec) -> list[Assignment]:
    """What is assigned by expressions, and not by an evaluation of the gradient."""
    return [statement for statement in spec.rule.update if statement != AGAIN]


def _without_places(text: str) -> str:
    """A program's text without the comments that name file and line."""
    return "\n".join(line.partition("  # ")[0] for line in text.splitlines())


def test_the_parser_groups_as_it_is_written() -> None:
    """What a spec holds is the drawn rule, to the compiler's parser and to the fuzzer's reader."""

    def same(spec: DrawnSpec, style: object, data: object) -> None:
        assert isinstance(style, type(PLAIN))
        with spec_file(yaml_of(spec, style)) as path:
            found = read_spec(path)
            parsed = compile_spec(found).parsed
        _assert_same_rule(rule_of(found), spec.rule)
        for statement, drawn in zip(parsed.statements, spec.rule.update, strict=True):
            assert statement.target == drawn.target
            assert _shape_of_ir(statement.value) == _shape_of_term(drawn.value)

    fuzz(same, specs(), styles, examples=100)


def _assert_same_rule(found: Rule, drawn: Rule) -> None:
    assert found.hyperparameters == drawn.hyperparameters
    assert found.options == drawn.options
    assert found.constraints == drawn.constraints
    assert found.update == drawn.update
    for state, other in zip(found.states, drawn.states, strict=True):
        assert (state.name, state.shape, state.when) == (other.name, other.shape, other.when)
        if state.init is None or other.init is None:
            assert state.init == other.init
        else:
            # Numbers are YAML's here, and lose their spelling.
            assert _values(_shape_of_term(state.init)) == _values(_shape_of_term(other.init))


def _values(shape: Shape) -> Shape:
    if shape[0] == "number":
        return shape[:2]
    return shape[0], *(_values(part) if isinstance(part, tuple) else part for part in shape[1:])


def test_printed_equations_read_back() -> None:
    """Text to IR to text to IR; the fuzzer's reader reads the printed text as the drawn term, too."""

    def same(spec: DrawnSpec, style: object, data: object) -> None:
        for statement in _equations(spec):
            text = written(statement.value, style)  # type: ignore[arg-type]
            assert read(text) == statement.value
            assert read_equation(f"x={text}") == ("x", statement.value)
            expression = parse_condition(Text.of(text))
            printed = expression_text(expression)
            assert parse_condition(Text.of(printed)) == expression
            assert _shape_of_term(read(printed)) == _shape_of_term(statement.value)

    fuzz(same, specs(), styles, examples=100)


def test_equations_pass_through_sympy_as_written() -> None:
    from solvergen.frontend.sympy_bridge import from_sympy, to_sympy

    def same(spec: DrawnSpec, data: object) -> None:
        for statement in _equations(spec):
            expression = parse_condition(Text.of(written(statement.value)))
            back = from_sympy(to_sympy(expression), as_written=True)
            assert _shape_of_ir(back) == _shape_of_ir(expression)

    fuzz(same, specs(), examples=60)


def test_layout_changes_nothing() -> None:
    """Neither the digest nor any program hangs on how a spec is laid out; spelling changes no program."""

    def same(spec: DrawnSpec, first: object, second: object, data: object) -> None:
        digests, programs = set(), set()
        for style, spelling in ((PLAIN, False), (first, False), (second, False), (second, True)):
            with spec_file(yaml_of(spec, style, spelling=spelling)) as path:  # type: ignore[arg-type]
                found = read_spec(path)
                unit = compile_spec(found)
            texts = (program_text(unit.parsed), program_text(unit.typed), program_text(unit.optimised))
            programs.add((*map(_without_places, texts), _without_places(schedule_text(unit.schedule))))
            if not spelling:
                digests.add(found.digest)
        assert len(programs) == 1
        assert len(digests) == 1

    fuzz(same, specs(), styles, styles, examples=40)


def test_building_again_changes_nothing(tmp_path: Path) -> None:
    """A build is the same twice; what it wrote is what ``--check`` expects, and isn't written again."""
    count = 0

    def same(spec: DrawnSpec, style: object, data: object) -> None:
        nonlocal count
        count += 1
        with spec_file(yaml_of(spec, style)) as path:  # type: ignore[arg-type]
            compiled = build([path], wrap=False)
            again = build([path], wrap=False)
        assert compiled.artifacts == again.artifacts
        assert summary_of(compiled.units[0]) == summary_of(again.units[0])
        folder = tmp_path / str(count)
        assert output.write(folder, compiled.artifacts).differs
        assert not output.compare(folder, again.artifacts).differs
        assert not output.write(folder, again.artifacts).differs

    fuzz(same, specs(), styles, examples=40)


@pytest.mark.parametrize("stage", ["parsed", "typed", "optimised", "scheduled", "latex", "sympy"])
def test_every_stage_can_be_shown(stage: str) -> None:
    def shown(spec: DrawnSpec, data: object) -> None:
        with spec_file(yaml_of(spec)) as path:
            assert stages.show(path, stage).endswith("\n")

    shown.__qualname__ += f"/{stage}"
    fuzz(shown, specs(), examples=40)
