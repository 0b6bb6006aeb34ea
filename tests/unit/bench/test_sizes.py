from __future__ import annotations

import pytest

from solvergen.bench.sizes import DEFAULT, Size, parse_sizes
from solvergen.errors import BenchmarkError


@pytest.mark.parametrize(
    ("text", "tensors", "elements"),
    [("7", 1, 7), ("3x5", 3, 5), ("50x320k", 50, 327_680), ("32M", 1, 33_554_432), ("2x1K", 2, 1024)],
)
def test_reads(text, tensors, elements):
    assert parse_sizes(text) == (Size(tensors, elements, text),)
    assert parse_sizes(text)[0].total == tensors * elements


def test_several_each_once_in_their_order():
    sizes = parse_sizes(" 3x5, 7,3x5,")
    assert [size.text for size in sizes] == ["3x5", "7"]
    assert len(parse_sizes(DEFAULT)) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no size"),
        (" , ", "no size"),
        ("ten", "'ten' is no size"),
        ("3x", "is no size"),
        ("-3", "is no size"),
        ("3x4x5", "is no size"),
        ("1.5M", "is no size"),
        ("٣", "is no size"),
        ("0x5", "nothing to time"),
        ("5x0", "nothing to time"),
        ("99999x99999999", "at most 8,589,934,592"),
    ],
)
def test_refuses(text, says):
    with pytest.raises(BenchmarkError, match=says):
        parse_sizes(text)
