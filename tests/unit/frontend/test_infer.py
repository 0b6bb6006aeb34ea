"""Types, roundings and powers, read off the typed program's text."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from solvergen.frontend.findings import Findings
from solvergen.frontend.infer import Typer
from solvergen.frontend.resolve import scalar_expression
from solvergen.ir.nodes import Call, Number, walk
from solvergen.ir.program import Level, Program, Role
from solvergen.ir.text import expression_text
from solvergen.ir.types import (
    ELEMENT_BOOL,
    ELEMENT_REAL,
    SCALAR_BOOL,
    SCALAR_INT,
    SCALAR_REAL,
    Type,
)
from solvergen.ir.verify import verify
from solvergen.spec.model import Hyperparameter, State, Text
from tests.unit.frontend.strategies import numeric
from tests.unit.frontend.support import analysed, codes, spec, value

TYPES = {
    "param": ELEMENT_REAL,
    "grad": ELEMENT_REAL,
    "m": ELEMENT_REAL,
    "beta1": SCALAR_REAL,
    "E": SCALAR_REAL,
    "lr": SCALAR_REAL,
    "x0": SCALAR_REAL,
    "k": SCALAR_INT,
    "t": SCALAR_INT,
    "flag": SCALAR_BOOL,
}


def typed(text: str) -> tuple[str, Type | None]:
    findings = Findings()
    result = Typer(Text.of(text), TYPES, findings, lambda node, text: None).visit(value(text))
    assert not findings.all()
    return expression_text(result), result.type


@pytest.mark.parametrize(
    ("text", "expected", "type"),
    [
        # a scalar meets an element: rounded once, as late as possible
        ("beta1*m", "round(beta1)*m", ELEMENT_REAL),
        ("(1 - beta1)*grad", "round(1 - beta1)*grad", ELEMENT_REAL),
        ("lr*beta1*grad", "round(lr*beta1)*grad", ELEMENT_REAL),
        ("lr*grad*beta1", "round(lr)*grad*round(beta1)", ELEMENT_REAL),
        ("2*grad", "round(2)*grad", ELEMENT_REAL),
        ("-lr*grad", "round(-lr)*grad", ELEMENT_REAL),
        ("-grad", "-grad", ELEMENT_REAL),
        ("1/2*grad", "round(1/2)*grad", ELEMENT_REAL),
        ("grad > lr", "grad > round(lr)", ELEMENT_BOOL),
        ("max(grad, 0)", "max(grad, round(0))", ELEMENT_REAL),
        ("clip(grad, -lr, lr)", "clip(grad, round(-lr), round(lr))", ELEMENT_REAL),
        ("where(flag, grad, lr)", "where(flag, grad, round(lr))", ELEMENT_REAL),
        ("where(grad > 0, 1, 2)", "where(grad > round(0), round(1), round(2))", ELEMENT_REAL),
        ("where(lr > 0, grad, param)", "where(lr > 0, grad, param)", ELEMENT_REAL),
        (
            "where(lr > 0 and grad > 0, 1, 0)",
            "where(lr > 0 and grad > round(0), round(1), round(0))",
            ELEMENT_REAL,
        ),
        ("where(flag, lr, t)", "where(flag, lr, t)", SCALAR_REAL),
        # whole numbers
        ("t", "t", SCALAR_INT),
        ("t - 1", "t - 1", SCALAR_INT),
        ("t*k + 1", "t*k + 1", SCALAR_INT),
        ("t/2", "t/2", SCALAR_REAL),
        ("t//2", "t//2", SCALAR_INT),
        ("t % k", "t%k", SCALAR_INT),
        ("t + 1.0", "t + 1.0", SCALAR_REAL),
        ("-t", "-t", SCALAR_INT),
        ("min(t, k)", "min(t, k)", SCALAR_INT),
        ("min(t, lr)", "min(t, lr)", SCALAR_REAL),
        ("floor(lr)", "floor(lr)", SCALAR_INT),
        ("floor(grad)", "floor(grad)", ELEMENT_REAL),
        ("sqrt(t)", "sqrt(t)", SCALAR_REAL),
        ("abs(t)", "abs(t)", SCALAR_INT),
        ("where(flag, t, 3)", "where(flag, t, 3)", SCALAR_INT),
        # powers
        ("grad**2", "ipow(grad, 2)", ELEMENT_REAL),
        ("grad**2.0", "ipow(grad, 2)", ELEMENT_REAL),
        ("grad**(1 + 1)", "ipow(grad, 2)", ELEMENT_REAL),
        ("grad**-1", "ipow(grad, -1)", ELEMENT_REAL),
        ("grad**-(1)", "ipow(grad, -1)", ELEMENT_REAL),
        ("grad**0", "ipow(grad, 0)", ELEMENT_REAL),
        ("grad**64", "ipow(grad, 64)", ELEMENT_REAL),
        ("grad**65", "pow(grad, round(65))", ELEMENT_REAL),
        ("grad**0.5", "pow(grad, round(0.5))", ELEMENT_REAL),
        ("grad**t", "pow(grad, round(t))", ELEMENT_REAL),
        ("grad**lr", "pow(grad, round(lr))", ELEMENT_REAL),
        ("2**grad", "pow(round(2), grad)", ELEMENT_REAL),
        ("grad**m", "pow(grad, m)", ELEMENT_REAL),
        ("beta1**t", "ipow(beta1, t)", SCALAR_REAL),
        ("beta1**(t - 1)", "ipow(beta1, t - 1)", SCALAR_REAL),
        ("beta1**(t*0.5)", "pow(beta1, t*0.5)", SCALAR_REAL),
        ("beta1**lr", "pow(beta1, lr)", SCALAR_REAL),
        ("beta1**100", "ipow(beta1, 100)", SCALAR_REAL),
        ("2**40", "ipow(2, 40)", SCALAR_INT),
        ("t**2", "ipow(t, 2)", SCALAR_INT),
        ("t**-2", "ipow(t, -2)", SCALAR_REAL),
        ("t**k", "ipow(t, k)", SCALAR_REAL),
        ("t**0.5", "pow(t, 0.5)", SCALAR_REAL),
        ("beta1**floor(t/k)", "ipow(beta1, floor(t/k))", SCALAR_REAL),
        ("1 - beta1**t", "1 - ipow(beta1, t)", SCALAR_REAL),
        # conditions
        ("lr > 0", "lr > 0", SCALAR_BOOL),
        ("not grad > 0", "not grad > round(0)", ELEMENT_BOOL),
        ("flag or grad > m", "flag or grad > m", ELEMENT_BOOL),
        ("0 < lr < 1", "0 < lr and lr < 1", SCALAR_BOOL),
    ],
)
def test_type_and_rounding(text, expected, type):
    assert typed(text) == (expected, type)


@settings(max_examples=200)
@given(numeric)
def test_typing_keeps_the_structure_and_the_invariants(expression):
    located = _with_places(expression)
    findings = Findings()
    result = Typer(Text.of("x"), TYPES, findings, lambda node, text: None).visit(located)
    assert {d.code for d in findings.all()} <= {"SG087"}
    if findings.all():
        return
    assert result.type is not None
    program = analysed("param = param - lr*grad").typed
    assert program is not None
    statement = program.statements[0]
    names = tuple(replace(program.symbols[0], name=name, type=type) for name, type in TYPES.items())
    verify(Program("x", Level.TYPED, (), names, (replace(statement, value=result),)), "typing")
    assert _stripped(result) == _stripped(expression)


def _with_places(expression):
    place = Text.of("x").location
    below = tuple(_with_places(operand) for operand in expression.operands)
    return replace(expression.with_operands(below), location=place)


def _stripped(expression) -> list[str]:
    """Names, numbers and operations in order, powers alike, roundings left out."""
    out = []
    for node in walk(expression):
        if isinstance(node, Number):
            out.append(repr(node.value))
        elif type(node).__name__ == "Round":
            continue
        elif isinstance(node, Call) and node.function in ("pow", "ipow"):
            out.append("**")
        else:
            out.append(str(getattr(node, "name", getattr(node, "op", getattr(node, "function", None)))))
    # Whole exponents are folded, so that what they were made of is gone.
    return out if "**" not in out else ["**"]


def roles(analysis):
    return {s.name: (s.role, s.type) for s in analysis.typed.symbols}


def values(analysis):
    return [expression_text(s.value) for s in analysis.typed.statements]


def test_assignments_to_buffers_and_scalars():
    analysis = analysed(
        "m = 0",
        "s = s*lr",
        "param = lr",
        "param = param - m*s",
        state=(State("m"), State("s", 1.0, "scalar")),
    )
    assert values(analysis) == ["round(0)", "s*lr", "round(lr)", "param - m*round(s)"]
    assert roles(analysis)["s"] == (Role.SCALAR_STATE, SCALAR_REAL)


def test_a_temporary_has_one_type_over_all_its_assignments():
    analysis = analysed("x = lr", "y = x*2", "x = grad", "param = param - x*y")
    assert roles(analysis)["x"] == (Role.TEMPORARY, ELEMENT_REAL)
    assert roles(analysis)["y"] == (Role.TEMPORARY, ELEMENT_REAL)
    assert values(analysis)[:3] == ["round(lr)", "x*round(2)", "grad"]


def test_types_settle_backwards_through_several_temporaries():
    analysis = analysed("x = 1", "y = 1", "z = y", "y = x", "x = grad", "param = param - lr*x*y*z")
    assert {roles(analysis)[name][1] for name in "xyz"} == {ELEMENT_REAL}
    assert values(analysis)[0] == "round(1)"


def test_scalar_temporaries_stay_scalars():
    analysis = analysed("c = 1 - lr**t", "n = t + 1", "param = param - c*n*grad")
    assert roles(analysis)["c"] == (Role.TEMPORARY, SCALAR_REAL)
    assert roles(analysis)["n"] == (Role.TEMPORARY, SCALAR_INT)
    assert values(analysis)[2] == "param - round(c*n)*grad"


def test_whole_and_other_assignments_make_a_real():
    analysis = analysed("n = t", "n = n + lr", "param = param - n*grad")
    assert roles(analysis)["n"][1] == SCALAR_REAL


def test_one_branch_of_an_option_decides():
    analysis = analysed(
        ("flag", "x = grad"), ("not flag", "x = lr"), "param = param - x*grad", options="flag"
    )
    assert roles(analysis)["x"][1] == ELEMENT_REAL
    assert values(analysis)[1] == "round(lr)"


def test_conditions_can_be_named():
    analysis = analysed(
        "up = grad > 0", "first = t == 1", "both = up and first", "param = where(both, param - lr, param)"
    )
    assert roles(analysis)["up"][1] == ELEMENT_BOOL
    assert roles(analysis)["first"][1] == SCALAR_BOOL
    assert roles(analysis)["both"][1] == ELEMENT_BOOL
    assert codes(analysis) == []


def test_integer_hyperparameters_are_whole():
    analysis = analysed(
        "param = param - lr*grad**k*lr**k", extra=(Hyperparameter("k", 3.0, min=1, integer=True),)
    )
    assert values(analysis) == ["param - round(lr)*pow(grad, round(k))*round(ipow(lr, k))"]


def test_scalar_expressions():
    rule = spec("param = param - lr*grad", options="flag", state=(State("m"),))
    assert scalar_expression(Text.of("lr > 0 or flag"), rule).type == SCALAR_BOOL
    assert scalar_expression(Text.of("2"), rule).type == SCALAR_INT
    assert expression_text(scalar_expression(Text.of("lr**2"), rule)) == "ipow(lr, 2)"
