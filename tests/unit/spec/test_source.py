"""Texts that know where their characters stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.errors import Location
from solvergen.spec.source import Source, Text


def test_a_text_of_its_own_begins_where_it_is_told():
    text = Text.of("m = g", "f.yaml", line=3, column=7)
    assert text.location == Location("f.yaml", 3, 7, 12)
    assert text.locate(0, 1) == Location("f.yaml", 3, 7, 8)
    assert text.locate(4, 5) == Location("f.yaml", 3, 11, 12)
    assert text.line_of(text.locate(4, 5)) == "      m = g"


def test_a_stretch_over_two_lines_is_cut_at_the_first():
    text = Text.of("m = a +\n  b")
    assert text.locate(4, 11) == Location("<text>", 1, 5, 8)
    assert text.locate(10, 11) == Location("<text>", 2, 3, 4)
    assert text.line_of(text.locate(10, 11)) == "  b"


@given(st.text(alphabet="ab =\n", max_size=12), st.integers(-3, 15), st.integers(-3, 15))
def test_any_offsets_give_a_place_of_at_least_one_column(content, start, end):
    place = Text.of(content).locate(start, end)
    assert 1 <= place.column < place.end_column
    assert 1 <= place.line <= content.count("\n") + 1


@given(st.text(alphabet="abc =\n", min_size=1, max_size=20), st.data())
def test_the_place_of_a_character_is_where_it_stands(content, data):
    text = Text.of(content, line=2, column=4)
    offset = data.draw(st.integers(0, len(content) - 1))
    place = text.locate(offset, offset + 1)
    if content[offset] != "\n":
        assert text.source.line(place.line)[place.column - 1] == content[offset]


def test_texts_compare_by_what_they_say():
    assert Text.of("a", line=1) == Text.of("a", line=2)
    assert hash(Text.of("a", line=1)) == hash(Text.of("a", line=2))
    assert Text.of("a") != Text.of("b")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_yaml_says(end):
    source = Source.of("f", f"a{end}b{end}{end}c")
    assert source.lines == ("a", "b", "", "c")
    assert source.line(4) == "c"
    assert source.line(0) == source.line(5) == ""
