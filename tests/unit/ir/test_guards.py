"""Truth tables of option conditions."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.ir.guards import MAX_OPTIONS, Guard

OPTIONS = ("a", "b", "c")
A, B, C = (Guard.option(OPTIONS, name) for name in OPTIONS)
SETTINGS = [dict(zip(OPTIONS, values, strict=True)) for values in product((False, True), repeat=3)]


def test_operators_are_those_of_logic():
    guard = (A & ~B) | C
    for setting in SETTINGS:
        assert guard.holds(setting) == ((setting["a"] and not setting["b"]) or setting["c"])


def test_always_and_never():
    assert Guard.always(OPTIONS).is_always
    assert not A.is_always
    assert (A | ~A).is_always
    assert (A & ~A).is_never
    assert not A.is_never
    assert Guard.always(()).is_always
    assert Guard.never(()).is_never


def test_implication():
    assert (A & B).implies(A)
    assert not A.implies(A & B)
    assert Guard.never(OPTIONS).implies(A)
    assert A.implies(Guard.always(OPTIONS))


def test_settings_lists_where_it_holds():
    assert (A & B).settings() == (
        {"a": True, "b": True, "c": False},
        {"a": True, "b": True, "c": True},
    )


@pytest.mark.parametrize(
    ("guard", "text"),
    [
        (A, "a"),
        (~A, "not a"),
        (A & B, "a and b"),
        (A & ~B, "a and not b"),
        (A | B, "a or b"),
        (Guard.always(OPTIONS), "True"),
        (Guard.never(OPTIONS), "False"),
    ],
)
def test_text_is_short(guard, text):
    assert guard.text() == text


@given(st.integers(0, 255))
def test_text_means_the_same(table):
    guard = Guard(OPTIONS, table)
    for setting in SETTINGS:
        assert eval(guard.text(), {}, dict(setting)) is guard.holds(setting)  # noqa: S307


@given(st.integers(0, 255))
def test_text_for_the_preprocessor_means_the_same(table):
    guard = Guard(OPTIONS, table)
    text = guard.text(conjunction=" && ", disjunction=" || ", negation="!", name="SG_OPTION_{}")
    python = text.replace("&&", "and").replace("||", "or").replace("!", "not ")
    for setting in SETTINGS:
        names = {f"SG_OPTION_{name}": value for name, value in setting.items()}
        assert eval(python, {}, names) is guard.holds(setting)  # noqa: S307


def test_the_worst_condition_is_printed_at_once():
    options = tuple("abcdefghij")
    assert len(options) == MAX_OPTIONS
    odd = Guard.never(options)
    for name in options:
        one = Guard.option(options, name)
        odd = (odd & ~one) | (~odd & one)
    assert len(odd.cubes()) == 512
