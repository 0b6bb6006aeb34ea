"""Whatever the text, the parser gives IR or findings; Python's parser never has to refuse anything."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from solvergen.frontend.findings import Findings
from solvergen.frontend.parse import read_equation, read_expression
from solvergen.frontend.resolve import analyse
from solvergen.ir.nodes import walk
from solvergen.ir.text import expression_text
from solvergen.spec.model import Text
from tests.unit.frontend.support import spec

PIECES = [
    *("a", "grad", "param", "t", "2", "0.5", "1e-8", "0", "-0.0", "007", "0x1", "1_0", "2x", "1j"),
    *("+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "=", "(", ")", ",", " ", "\n"),
    *("and", "or", "not", "if", "else", "lambda", "for", "in", "is", "True", "None", "await", "yield"),
    *("sqrt(", "max(", "where(", "clip(", "foo(", "sqrt", "sum", "pow("),
    *(
        "^",
        "&",
        "|",
        "~",
        "!",
        "?",
        ":",
        ";",
        ":=",
        "->",
        "@",
        ".",
        "[",
        "]",
        "{",
        "}",
        "'",
        '"',
        "#",
        "\\",
        "é",
        "²",
    ),
]
soup = st.lists(st.sampled_from(PIECES), max_size=25).map(" ".join)
glued = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
texts = st.one_of(soup, glued, st.text(max_size=40))


@settings(max_examples=1500)
@given(texts)
def test_an_expression_or_findings(text):
    findings = Findings()
    expression = read_expression(Text.of(text), findings)
    assert (expression is None) == findings.has_errors
    for finding in findings.all():
        assert "can't be read" not in finding.message
        assert 1 <= finding.location.column < finding.location.end_column
    if expression is not None:
        assert all(node.location is not None for node in walk(expression))
        again = read_expression(Text.of(expression_text(expression)), Findings())
        assert again == expression


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "param", "m", "grad", "t"]), texts), min_size=1, max_size=5)
)
def test_a_program_or_findings(equations):
    analysis = analyse(spec(*[f"{target} = {text}" for target, text in equations]))
    failed = any(d.severity == "error" for d in analysis.diagnostics)
    assert failed == (analysis.typed is None) == (analysis.parsed is None)


@settings(max_examples=500)
@given(texts)
def test_an_equation_or_findings(text):
    findings = Findings()
    assert (read_equation(Text.of(text), findings) is None) == findings.has_errors
