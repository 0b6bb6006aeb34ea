"""Address ranges, against a direct count of bytes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from solvergen.runtime.spans import Spans, overlapping

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6)), max_size=6)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), max_size=6), RANGES)
def test_spans_find_what_a_search_finds(gaps, asked):
    own, position = [], 0
    for gap, size in gaps:
        own.append((position + gap, size))
        position += gap + size
    own.reverse()  # the order that they are given in doesn't matter
    spans = Spans([(start, start + size) for start, size in own])
    owner = {b: i for i, (start, size) in enumerate(own) for b in range(start, start + size)}
    wanted = [{owner[b] for b in range(start, start + size) if b in owner} for start, size in asked]
    met = spans.meet(np.array([s for s, _ in asked], np.int64), np.array([n for _, n in asked], np.int64))
    assert met.tolist() == [bool(owners) for owners in wanted]
    for (start, size), owners in zip(asked, wanted, strict=True):
        found = spans.met_by(start, start + size)
        assert found in owners if owners else found is None


def test_the_memory_of_arrays():
    arrays = [np.zeros(4), np.zeros(0), np.zeros(3, np.float32)]
    spans = Spans.over(arrays, lambda a: (a.ctypes.data, a.ctypes.data + a.nbytes))
    assert sorted(spans.starts.tolist()) == spans.starts.tolist()
    for i in (0, 2):
        address = arrays[i].ctypes.data
        assert spans.met_by(address + 8, address + 9) == i
    assert (spans.ends - spans.starts).tolist() in ([32, 12], [12, 32])


def test_two_that_overlap_are_found_wherever_they_are_given():
    apart = [(0, 4, "a"), (4, 8, "b"), (6, 6, "empty"), (20, 30, "c")]
    assert overlapping(apart) is None
    assert overlapping([*apart, (29, 31, "d")]) == ("c", "d")
    assert overlapping([(3, 5, "over both"), *apart]) == ("a", "over both")
    assert overlapping([*apart, (20, 30, "the same")]) == ("c", "the same")
    assert overlapping([]) is None
