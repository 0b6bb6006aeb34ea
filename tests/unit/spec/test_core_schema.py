"""Plain scalars mean what YAML 1.2 says, not what YAML 1.1 did."""

from __future__ import annotations

import math

import pytest

from solvergen.spec.core_schema import resolve, vanishes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-8", 1e-8),
        ("1E-08", 1e-8),
        ("1e8", 1e8),
        ("1.0e8", 1e8),
        ("1e+3", 1e3),
        ("0.1e1", 1.0),
        ("1.e-3", 1e-3),
        (".5", 0.5),
        ("5.", 5.0),
        ("-.5", -0.5),
        ("+0.1", 0.1),
        ("-0.0", -0.0),
        ("0.1", 0.1),
        ("10000", 10000),
        ("-3", -3),
        ("010", 10),
        ("08", 8),
        ("0o17", 15),
        ("0x1F", 31),
        ("9007199254740993", 9007199254740992.0),
        ("1.0e+400", math.inf),
        ("9" * 400, math.inf),
        ("0x" + "f" * 400, math.inf),
        (".inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_numbers(text, value):
    found = resolve(text)
    assert isinstance(found, (int, float))
    assert not isinstance(found, bool)
    assert found == value
    assert math.copysign(1, found) == math.copysign(1, value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text):
    assert math.isnan(resolve(text))


@pytest.mark.parametrize(
    "text",
    [
        "1:30",
        "12:30",
        "1_701",
        "0.1f",
        "1/2",
        "(0.9",
        "0.9, 0.999",
        "2024-01-01",
        "nan",
        "inf",
        "NaN",
        "+.nan",
        "y",
        "n",
        "Y",
        "N",
        "yes",
        "no",
        "NO",
        "on",
        "off",
        "On",
        "tRUE",
        "nULL",
        "0o8",
        "0xg",
        "e1",
        ".",
        "-",
        "1e",
        "1e1.5",
        "0b1",
        "١",
        "1 ",
        "=",
        "<<",
        "abc",
    ],
)
def test_texts(text):
    assert resolve(text) == text


@pytest.mark.parametrize("text", ["true", "True", "TRUE"])
def test_true(text):
    assert resolve(text) is True


@pytest.mark.parametrize("text", ["false", "False", "FALSE"])
def test_false(text):
    assert resolve(text) is False


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null(text):
    assert resolve(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1e-400", True),
        ("-0.1e-330", True),
        ("5e-324", False),
        ("0", False),
        ("0e-999", False),
        ("0.0", False),
        ("abc", False),
        ("0x0", False),
    ],
)
def test_numbers_that_vanish(text, expected):
    assert vanishes(text) is expected
