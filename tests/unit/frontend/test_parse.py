"""Text to IR: precedence, associativity, spellings, and where things stand."""

from __future__ import annotations

import math

import pytest

from solvergen.errors import Location
from solvergen.frontend.parse import parse_condition, parse_equation, target_of
from solvergen.ir.nodes import Binary, Call, Compare, Logic, Name, Number, Unary, walk
from solvergen.spec.model import Text
from tests.unit.frontend.support import value

A, B, C, D = (Name(name) for name in "abcd")


def n(x):
    return Number(float(x), isinstance(x, int))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b + c", Binary("+", Binary("+", A, B), C)),
        ("a + (b + c)", Binary("+", A, Binary("+", B, C))),
        ("a - b - c", Binary("-", Binary("-", A, B), C)),
        ("a*b/c", Binary("/", Binary("*", A, B), C)),
        ("a*(b/c)", Binary("*", A, Binary("/", B, C))),
        ("a//b%c", Binary("%", Binary("//", A, B), C)),
        ("a + b*c", Binary("+", A, Binary("*", B, C))),
        ("a**b**c", Binary("**", A, Binary("**", B, C))),
        ("(a**b)**c", Binary("**", Binary("**", A, B), C)),
        ("-a**b", Unary("-", Binary("**", A, B))),
        ("(-a)**b", Binary("**", Unary("-", A), B)),
        ("a**-b", Binary("**", A, Unary("-", B))),
        ("-a*b", Binary("*", Unary("-", A), B)),
        ("-2**b", Unary("-", Binary("**", n(2), B))),
        ("-2*b", Binary("*", n(-2), B)),
        ("2**-1", Binary("**", n(2), n(-1))),
        ("--a", Unary("-", Unary("-", A))),
        ("- -2", n(2)),
        ("+a", A),
        ("a - -1", Binary("-", A, n(-1))),
        ("a < b", Compare("<", A, B)),
        ("a < b <= c", Logic("and", Compare("<", A, B), Compare("<=", B, C))),
        (
            "a < b < c < d",
            Logic("and", Logic("and", Compare("<", A, B), Compare("<", B, C)), Compare("<", C, D)),
        ),
        ("a and b and c", Logic("and", Logic("and", A, B), C)),
        ("a or b and c", Logic("or", A, Logic("and", B, C))),
        ("not a and b", Logic("and", Unary("not", A), B)),
        ("not a < b", Unary("not", Compare("<", A, B))),
        ("not (a and b)", Unary("not", Logic("and", A, B))),
        ("a if b else c", Call("where", (B, A, C))),
        ("a if b else c if d else a", Call("where", (B, A, Call("where", (D, C, A))))),
        ("(a if b else c) if d else a", Call("where", (D, Call("where", (B, A, C)), A))),
        ("a + b if c else d", Call("where", (C, Binary("+", A, B), D))),
        ("where(a, b, c)", Call("where", (A, B, C))),
        ("max(a, min(b, c))", Call("max", (A, Call("min", (B, C))))),
        ("sqrt(-a)", Call("sqrt", (Unary("-", A),))),
        ("a != a", Compare("!=", A, A)),
        ("((a))", A),
        ("a\n  + b", Binary("+", A, B)),
        ("\ta\t*\tb ", Binary("*", A, B)),
    ],
)
def test_structure_is_as_written(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize("text", ["x*1e-300*1e-300", "1/49*49", "x - x", "0*x", "sqrt(v)**2", "0.5*(a + b)"])
def test_nothing_is_folded_or_rearranged(text):
    names = [node.name for node in walk(value(text)) if isinstance(node, Name)]
    numbers = [node.value for node in walk(value(text)) if isinstance(node, Number)]
    written = (
        text.replace("sqrt", "").translate(str.maketrans("*/-+()", "      ", "")).replace("e 300", "e-300")
    )
    assert sorted(names) == sorted(word for word in written.split() if word[0].isalpha())
    assert numbers == [float(word) for word in written.split() if word[0].isdigit()]


@pytest.mark.parametrize(
    ("text", "expected", "integral"),
    [
        ("0", 0.0, True),
        ("7", 7.0, True),
        ("2.0", 2.0, False),
        ("2.", 2.0, False),
        (".5", 0.5, False),
        ("1e3", 1000.0, False),
        ("1E-08", 1e-8, False),
        ("1.5e+10", 1.5e10, False),
        ("0.1", 0.1, False),
        ("9007199254740993", 9007199254740992.0, True),  # half way: to even
        ("100000000000000000000", 1e20, True),
        ("1.7976931348623157e308", 1.7976931348623157e308, False),
        ("5e-324", 5e-324, False),
        ("0e5", 0.0, False),
        ("0.30000000000000004", 0.30000000000000004, False),
        ("123456789012345678901234567890", 123456789012345678901234567890.0, True),
    ],
)
def test_numbers_are_the_nearest_doubles(text, expected, integral):
    assert value(text) == Number(expected, integral)


def test_the_sign_of_a_written_zero_is_kept():
    assert math.copysign(1, value("-0.0").value) == -1
    assert math.copysign(1, value("-0").value) == -1
    assert not value("-0").integral
    assert math.copysign(1, value("0").value) == 1


def test_an_equation_has_a_target():
    assert parse_equation(Text.of("m = beta1*m")) == ("m", Binary("*", Name("beta1"), Name("m")))
    assert parse_equation(Text.of("m=a==b")) == ("m", Compare("==", A, B))
    assert target_of(Text.of(" m = (")) == "m"
    assert target_of(Text.of("m == 1")) is None


@pytest.mark.parametrize(
    "name",
    [
        "beta",
        "gamma",
        "zeta",
        "E",
        "I",
        "N",
        "S",
        "O",
        "Q",
        "pi",
        "oo",
        "re",
        "im",
        "Chi",
        "x0",
        "j1",
        "y0",
        "half",
        "double_",
        "threadIdx",
    ],
)
def test_names_that_others_claim_are_names(name):
    assert value(f"{name}*grad") == Binary("*", Name(name), Name("grad"))


def test_every_node_knows_its_place():
    text = Text.of("m = beta1*m + max(a, -2)", "adam.yaml", 14, 9)
    _, expression = parse_equation(text)
    where = {type(node).__name__ + str(getattr(node, "name", "")): node.location for node in walk(expression)}
    assert where["Namebeta1"] == Location("adam.yaml", 14, 13, 18)
    assert where["Call"] == Location("adam.yaml", 14, 23, 33)
    assert where["Number"] == Location("adam.yaml", 14, 30, 32)
    assert all(node.location is not None for node in walk(expression))


def test_places_on_the_second_line_of_a_text():
    text = Text.of("m = a\n    + bad", "adam.yaml", 3, 5)
    bad = parse_equation(text)[1].right
    assert bad.location == Location("adam.yaml", 4, 7, 10)


def test_places_do_not_take_part_in_comparison():
    assert parse_condition(Text.of("  a  +  b")) == parse_condition(Text.of("a+b", "other.yaml", 7, 7))
