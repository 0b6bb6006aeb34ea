"""Suggestions and names in messages."""

from __future__ import annotations

import pytest

from solvergen.runtime.naming import did_you_mean, with_article


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("momentun", ["lr", "momentum"], "; did you mean 'momentum'?"),
        ("learning_rate", ["lr", "eps"], "; did you mean 'lr'?"),
        ("xyz", ["lr", "eps"], "; there are 'lr' and 'eps'"),
        ("xyz", ["lr"], "; there is only 'lr'"),
        ("xyz", [], ""),
    ],
)
def test_what_was_probably_meant(name: str, known: list[str], said: str) -> None:
    assert did_you_mean(name, known) == said


def test_what_is_shown_may_be_less_than_what_is_known() -> None:
    assert did_you_mean("xyz", ["lr", "wrap_l2"], shown=iter(["lr"])) == "; there is only 'lr'"
    assert did_you_mean("xyz", ["wrap_l2"], shown=[]) == ""


@pytest.mark.parametrize(
    ("noun", "said"),
    [
        ("list", "a list"),
        ("int", "an int"),
        ("numpy.ndarray", "a numpy.ndarray"),
        ("Adam", "an Adam"),
        ("uint8", "a uint8"),
    ],
)
def test_articles(noun: str, said: str) -> None:
    assert with_article(noun) == said
