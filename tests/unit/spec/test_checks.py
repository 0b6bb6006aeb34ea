"""What must hold beyond the shape: ranges, numbers, switches, references."""

from __future__ import annotations

import pytest

from solvergen.spec.model import Hyperparameter
from tests.unit.spec.support import MINIMAL, codes, findings, only, read, section


def entry(**bounds):
    return section("hyperparameters", "lr: {" + ", ".join(f"{k}: {v}" for k, v in bounds.items()) + "}")


@pytest.mark.parametrize(
    ("bounds", "reason"),
    [
        ({"default": -1, "min": 0}, "-1 is less than 0"),
        ({"default": 1.5, "max": 1}, "1.5 is more than 1"),
        ({"default": 0, "above": 0}, "0 isn't above 0"),
        ({"default": -0.0, "above": 0}, "-0 isn't above 0"),
        ({"default": 1, "min": 0, "below": 1}, "1 isn't below 1"),
        ({"default": 2.5, "integer": "true"}, "2.5 isn't a whole number"),
        ({"default": 0.30000000000000004, "max": 0.3}, "0.30000000000000004 is more than 0.3"),
    ],
)
def test_a_default_outside_its_range(tmp_path, bounds, reason):
    found = only(tmp_path, entry(**bounds))
    assert (found.code, found.location.line, found.location.column) == ("SG024", 6, 17)
    assert found.message == f"the default of lr is outside its range: {reason}"


@pytest.mark.parametrize(
    "bounds",
    [
        {"default": 0, "min": 0, "max": 0},
        {"default": 1e308, "min": 1e308},
        {"default": 5e-324, "above": 0},
        {"default": 3, "min": 3, "below": 4, "integer": "true"},
        {"default": 3.0, "integer": "true"},
        {"default": -7},
    ],
)
def test_a_default_in_its_range(tmp_path, bounds):
    assert codes(tmp_path, entry(**bounds)) == []


@pytest.mark.parametrize(
    "bounds",
    [
        {"min": 1, "max": 0},
        {"min": 1, "below": 1},
        {"above": 1, "max": 1},
        {"above": 1, "below": 1},
        {"above": 2, "below": 1},
        {"above": 0, "below": 1, "integer": "true"},
        {"min": 0.2, "max": 0.8, "integer": "true"},
        {"above": 1, "below": 2, "integer": "true"},
        {"min": 0.5, "below": 1, "integer": "true"},
    ],
)
def test_an_empty_range(tmp_path, bounds):
    assert findings(tmp_path, entry(default=0.5, **bounds)) == [("SG025", 6, 3)]


@pytest.mark.parametrize(
    "bounds",
    [
        {"min": 1, "max": 1},
        {"above": 0, "max": 1, "integer": "true"},
        {"min": 0.5, "max": 1, "integer": "true"},
        {"above": 0.5, "below": 1.5, "integer": "true"},
    ],
)
def test_a_range_of_one(tmp_path, bounds):
    assert codes(tmp_path, entry(default=1, **bounds)) == []


def test_both_kinds_of_bound(tmp_path):
    assert findings(tmp_path, entry(default=1, min=0, above=0)) == [("SG015", 6, 28)]
    assert findings(tmp_path, entry(default=0, max=1, below=1)) == [("SG015", 6, 28)]


@pytest.mark.parametrize("field", ["default", "min", "max", "above", "below"])
@pytest.mark.parametrize("value", ["1e-400", "-1e-330", "0.0001e-323"])
def test_no_number_becomes_zero_unnoticed(tmp_path, field, value):
    bounds = {"default": 0, field: value} if field != "default" else {"default": value}
    assert "SG013" in codes(tmp_path, entry(**bounds))


@pytest.mark.parametrize("value", [".nan", ".inf", "-.Inf", "1e999", "9" * 400])
def test_numbers_are_finite(tmp_path, value):
    for field in ("default", "min", "max"):
        bounds = {"default": 0, field: value}
        assert codes(tmp_path, entry(**bounds)) == ["SG013"]
    assert codes(tmp_path, section("state", f"m: {{init: {value}}}")) == ["SG013"]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("n", "false"),
        ("no", "false"),
        ("off", "false"),
        ("y", "true"),
        ("Yes", "true"),
        ("ON", "true"),
        ('"true"', "true"),
        ("'false'", "false"),
    ],
)
def test_a_word_is_no_switch(tmp_path, word, meant):
    found = only(tmp_path, section("options", f"nesterov: {{default: {word}}}"))
    assert (found.code, found.location.line, found.location.column) == ("SG012", 8, 23)
    assert found.hint == f"write {meant}, without quotes"


def test_a_scalar_is_no_copy(tmp_path):
    assert findings(tmp_path, section("state", "m: {init: param, shape: scalar}")) == [("SG027", 8, 13)]
    assert codes(tmp_path, section("state", "m: {init: param, shape: param}")) == []
    assert codes(tmp_path, section("state", "m: {init: param}")) == []


def test_references(tmp_path):
    both = MINIMAL + "reference: {title: A}\nreferences: [{title: B}]\n"
    assert findings(tmp_path, both) == [("SG015", 7, 1)]
    for url in ("example.org", "ftp://example.org", "javascript:alert(1)", "https://a b"):
        assert codes(tmp_path, MINIMAL + f"reference: {{title: A, url: '{url}'}}\n") == ["SG014"]
        assert codes(tmp_path, MINIMAL + f"references: [{{title: A, url: '{url}'}}]\n") == ["SG014"]
    assert len(read(tmp_path, MINIMAL + "references: [{title: A}, {title: B}]\n").references) == 2


@pytest.mark.parametrize(
    ("name", "item", "limit"),
    [
        ("hyperparameters", "  h{}: {{default: 1}}\n", 64),
        ("options", "  o{}: {{}}\n", 10),
        ("state", "  s{}: {{}}\n", 32),
        ("constraints", "  - {{that: lr > {}, message: m}}\n", 64),
        ("update", "  - a{} = 1\n", 512),
    ],
)
def test_how_many_there_may_be(tmp_path, name, item, limit):
    base = section(name, "")
    line = base.count("\n")
    most = base + "".join(item.format(i) for i in range(limit))
    assert codes(tmp_path, most) == []
    assert findings(tmp_path, most + item.format(limit)) == [("SG026", line, 1)]


def test_the_model_knows_the_range():
    half_open = Hyperparameter("b", 0.9, min=0.0, below=1.0)
    assert half_open.range_text == "at least 0 and below 1"
    whole = Hyperparameter("n", 1.0, above=0.0, max=3.0, integer=True)
    assert whole.range_text == "a whole number above 0 and at most 3"
    assert Hyperparameter("x", 1.0).range_text == ""
    assert Hyperparameter("x", 1.0, integer=True).range_text == "a whole number"
