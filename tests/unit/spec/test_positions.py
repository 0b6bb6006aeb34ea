"""Every character of a scalar is found in the file, in whatever style it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.spec.source import Source
from solvergen.spec.tree import Mapping, parse_tree

WORDS = st.text(alphabet="abc*+-()=.1", min_size=1, max_size=6).map(lambda word: "x" + word)
LINES = st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=1, max_size=4)
GAPS = st.integers(1, 3)


def scalar_of(document):
    tree, found = parse_tree(Source.of("f.yaml", document))
    assert found == []
    assert isinstance(tree, Mapping)
    return tree.get("key")


def check(document, expected):
    """The value is ``expected``, and each of its visible characters stands where its position says."""
    scalar = scalar_of(document)
    text = scalar.text
    assert text.text == expected
    lines = document.split("\n")
    seen = []
    for offset, character in enumerate(text.text):
        place = text.locate(offset, offset + 1)
        assert text.line_of(place) == lines[place.line - 1]
        if character not in " \n":
            assert lines[place.line - 1][place.column - 1] == character
            seen.append((place.line, place.column))
    assert seen == sorted(set(seen))
    last = text.locate(len(text.text), len(text.text))
    assert (last.line, last.column) >= seen[-1]


def joined(lines, gap):
    return [(" " * gap).join(words) for words in lines]


@given(LINES, GAPS, st.booleans())
def test_plain(lines, gap, comment):
    rows = joined(lines, gap)
    document = "key: " + "\n    ".join(rows) + ("   # remark\n" if comment else "\n")
    check(document, " ".join(rows))


@given(LINES, GAPS, st.sampled_from("'\""))
def test_quoted(lines, gap, quote):
    rows = joined(lines, gap)
    check(f"other: 1\nkey: {quote}" + "\n  ".join(rows) + f"{quote}  # remark\n", " ".join(rows))


@given(LINES, GAPS)
def test_folded_at_an_empty_line(lines, gap):
    rows = joined(lines, gap)
    check("key: '" + "\n\n   ".join(rows) + "'\n", "\n".join(rows))


@given(LINES, GAPS, st.sampled_from(["", "-", "+", "2", "2-"]))
def test_literal(lines, gap, header):
    rows = joined(lines, gap)
    end = "" if "-" in header else "\n"
    check(f"key: |{header} # remark\n" + "".join(f"  {row}\n" for row in rows), "\n".join(rows) + end)


@given(LINES, GAPS, st.sampled_from(["", "-"]))
def test_folded(lines, gap, header):
    rows = joined(lines, gap)
    end = "" if "-" in header else "\n"
    check(f"key: >{header}\n" + "".join(f"    {row}\n" for row in rows) + "other: 1\n", " ".join(rows) + end)


def test_indented_lines_of_a_literal():
    check("key: |\n  a\n    b\n   c\n", "a\n  b\n c\n")


def test_in_a_flow_mapping():
    check("{other: 1, key: a b, third: 2}", "a b")


@pytest.mark.parametrize(
    ("written", "value", "columns"),
    [
        (r'"a\x41b"', "aAb", [7, 8, 12]),
        (r'"a\"b"', 'a"b', [7, 8, 10]),
        (r'"a\tb"', "a\tb", [7, 8, 10]),
        (r'"\u00e9 + b"', "é + b", [7, 13, 14, 15, 16]),
        (r'"\U0001F600b"', "\U0001f600b", [7, 17]),
        ("'it''s'", "it's", [7, 8, 9, 11]),
    ],
)
def test_escapes(written, value, columns):
    text = scalar_of(f"key: {written}").text
    assert text.text == value
    assert [column for _, column in text.positions[:-1]] == columns


def test_an_escaped_line_break_is_nothing():
    text = scalar_of('key: "ab\\\n    cd"').text
    assert text.text == "abcd"
    assert text.positions == ((1, 7), (1, 8), (2, 5), (2, 6), (2, 7))


def test_an_empty_text_has_a_place():
    text = scalar_of("key: ''").text
    assert text.text == ""
    assert (text.location.line, text.location.column) == (1, 7)


def test_wide_characters_count_once():
    text = scalar_of("key: 学習 = g").text
    assert text.positions[3] == (1, 9)
