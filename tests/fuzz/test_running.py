"""A failure that a fuzzer finds is the failure that is shown."""

from __future__ import annotations

import time

import pytest
from hypothesis import strategies as st

from tests.fuzz import running
from tests.fuzz.running import fuzz

lists = st.lists(st.integers(0, 100))


def test_a_failure_that_takes_long_to_make_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "SHRINKING_SECONDS", 0.1)

    def body(drawn: list[int], data: st.DataObject) -> None:
        time.sleep(0.02)
        more = data.draw(lists)  # so that to stop before it draws less, which Hypothesis takes ill
        assert sum(drawn) + sum(more) < 40, "too much"

    with pytest.raises(AssertionError, match=r"the smallest failure found in .* too much") as caught:
        fuzz(body, lists, examples=200)
    assert running.AGAIN in str(caught.value)
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_failure_that_is_made_smaller_in_time() -> None:
    def body(drawn: list[int], data: st.DataObject) -> None:
        assert sum(drawn) < 40, "too much"

    with pytest.raises(AssertionError, match="too much") as caught:
        fuzz(body, lists, examples=200)
    assert any("[40]" in note for note in getattr(caught.value, "__notes__", ["[40]"]))


def test_the_seed_alone_decides() -> None:
    runs: list[list[list[int]]] = [[], []]
    for run in runs:
        fuzz(lambda drawn, data, run=run: run.append(drawn), lists, examples=50)
    assert runs[0] == runs[1]
    assert len(runs[0]) == 50
