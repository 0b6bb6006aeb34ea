"""How findings are shown."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from solvergen.errors import Diagnostic, Location
from solvergen.spec.report import MAX_WIDTH, as_data, count, format_diagnostic, format_diagnostics

LINE = "  lr: {default: abc}"
FOUND = Diagnostic(
    "SG012", "lr must be a number", Location("specs/a.yaml", 14, 17, 20), "write a number", LINE
)


def at(source, column, end_column, line=1):
    return Diagnostic("SG012", "m", Location("f", line, column, end_column), None, source)


def test_a_finding_with_everything():
    assert format_diagnostic(FOUND) == (
        "specs/a.yaml:14:17: error: SG012: lr must be a number\n"
        "   |\n"
        "14 |   lr: {default: abc}\n"
        "   |                 ^^^\n"
        "   = write a number"
    )


def test_findings_stand_apart():
    warning = Diagnostic("SG068", "no effect", Location("b.yaml", 3, 1, 2), severity="warning")
    assert format_diagnostics([FOUND, warning]).split("\n\n")[1] == "b.yaml:3:1: warning: SG068: no effect"
    assert format_diagnostics([]) == ""


def test_dressed_by_whoever_prints():
    dressed = format_diagnostic(FOUND, lambda role, text: f"<{role}>{text}</{role}>")
    assert dressed.splitlines() == [
        "<place>specs/a.yaml:14:17</place>: <error>error</error>: <code>SG012</code>: "
        "<message>lr must be a number</message>",
        "<margin>   |</margin>",
        f"<margin>14 |</margin> <source>{LINE}</source>",
        "<margin>   |</margin> <caret>                ^^^</caret>",
        "<margin>   =</margin> <hint>write a number</hint>",
    ]


def caret_line(diagnostic):
    return format_diagnostic(diagnostic).splitlines()[-1][4:]


def source_line(diagnostic):
    return format_diagnostic(diagnostic).splitlines()[-2][4:]


def test_a_caret_past_the_end_of_the_line():
    assert caret_line(at("abc", 4, 5)) == "   ^"
    assert caret_line(at("abc", 40, 50)) == "   ^"


def test_an_end_past_the_end_of_the_line():
    assert caret_line(at("abc", 2, 99)) == " ^^"


def test_tabs_and_wide_letters_keep_the_caret_in_place():
    assert source_line(at("\ta\tb", 4, 5)) == " a b"
    assert caret_line(at("\ta\tb", 4, 5)) == "   ^"
    assert caret_line(at("学習b", 3, 4)) == "    ^"
    assert caret_line(at("学習b", 1, 2)) == "^^"
    assert caret_line(at("e\u0301b", 3, 4)) == " ^"


def test_control_characters_are_not_printed():
    shown = format_diagnostic(Diagnostic("SG002", "a\x1b[31mb", Location("f", 1, 1, 2), "\x07", "x\x1b[2Jy"))
    assert "\x1b" not in shown
    assert "\x07" not in shown


def test_of_a_long_line_the_part_around_the_caret():
    line = "".join(chr(97 + i % 26) for i in range(1000))
    shown = source_line(at(line, 500, 503))
    caret = caret_line(at(line, 500, 503))
    start, end = caret.index("^"), len(caret)
    assert len(shown) == MAX_WIDTH + 2
    assert shown[0] == shown[-1] == "…"
    assert shown[start:end] == line[499:502]
    assert source_line(at(line, 1, 2)).startswith("abc")
    assert source_line(at(line, 1000, 1001)).endswith(line[-3:])


@given(st.text(alphabet="ab \t學é", max_size=300), st.integers(1, 310), st.integers(0, 20))
def test_any_place_can_be_shown(line, column, length):
    text = format_diagnostic(at(line, column, column + length))
    assert text.count("\n") == (3 if line.strip() else 0)
    if line.strip():
        assert set(caret_line(at(line, column, column + length)).strip()) == {"^"}


def test_as_data():
    data = as_data(FOUND)
    assert (
        json.loads(json.dumps(data))
        == data
        == {
            "code": "SG012",
            "severity": "error",
            "message": "lr must be a number",
            "hint": "write a number",
            "file": "specs/a.yaml",
            "line": 14,
            "column": 17,
            "end_column": 20,
            "source": LINE,
        }
    )


def test_count():
    warning = Diagnostic("SG068", "m", Location("f", 1, 1, 2), severity="warning")
    assert count([]) == ""
    assert count([FOUND]) == "1 error"
    assert count([FOUND, warning, FOUND, warning, warning]) == "2 errors, 3 warnings"
