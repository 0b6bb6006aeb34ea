"""Chunks and the begin of states, each against a direct count."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvergen.runtime.cuda.tables import THREADS, chunks_of, lanes_of, state_offset
from solvergen.runtime.kernel_interface import CHUNK

sizes_of_tensors = st.lists(st.integers(0, 5000), min_size=1, max_size=8)


@given(sizes_of_tensors, st.sampled_from([2, 4, 8]))
def test_chunks_cover_every_element_once(sizes: list[int], lanes: int) -> None:
    seen = [np.zeros(size, int) for size in sizes]
    for tensor, count, start in chunks_of(sizes, lanes).tolist():
        assert count > 0
        seen[tensor][start : start + count] += 1
        assert start + count <= sizes[tensor]
    assert all((part == 1).all() for part in seen)


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_a_small_launch_gives_each_thread_one_word(lanes: int) -> None:
    chunks = chunks_of([1_000_000], lanes)
    assert chunks["count"][0] == THREADS * lanes


def test_large_launches_keep_the_table_short_and_the_counts_in_32_bits() -> None:
    sizes = [2**33 + 5, 3, 2**31 + 1]
    chunks = chunks_of(sizes, 4)
    assert len(chunks) < 40_000
    assert chunks["count"].min() > 0
    for tensor, size in enumerate(sizes):
        own = chunks[chunks["tensor"] == tensor]
        assert own["start"].tolist() == [0, *np.cumsum(own["count"], dtype=np.int64)[:-1].tolist()]
        assert int(own["count"].sum(dtype=np.int64)) == size


def test_all_chunks_of_a_tensor_begin_alike_relative_to_a_word() -> None:
    starts = chunks_of([10_000_001, 77], 8)["start"]
    assert (starts % (16 // 2) == 0).all()


def test_no_chunks_for_empty_tensors() -> None:
    assert len(chunks_of([0, 0], 4)) == 0
    assert chunks_of([0, 5, 0, 7], 4)["tensor"].tolist() == [1, 3]


def test_a_chunk_is_laid_out_as_the_kernel_reads_it() -> None:
    assert CHUNK.itemsize == 16
    assert [CHUNK.fields[name][1] for name in ("tensor", "count", "start")] == [0, 4, 8]  # type: ignore[index]


@pytest.mark.parametrize(
    ("itemsizes", "lanes"), [((4, 4), 4), ((8, 8), 2), ((4, 2), 8), ((2, 4), 8), ((2, 2), 8)]
)
def test_lanes(itemsizes: tuple[int, int], lanes: int) -> None:
    assert lanes_of(itemsizes) == lanes


@pytest.mark.parametrize(("param", "state"), [(4, 4), (8, 8), (2, 4)])
def test_a_state_reaches_a_word_after_as_many_elements_as_its_parameter(param: int, state: int) -> None:
    for address in range(4096, 4096 + 64, param):
        offset = state_offset(address, param, state)
        assert 0 <= offset < 16
        head = next(n for n in range(16) if (address + n * param) % 16 == 0)
        assert (offset + head * state) % 16 == 0
