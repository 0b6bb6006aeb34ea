"""The tables that a launch hands to its kernel: chunks of tensors, pointers, rows of scalars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.kernel_interface import chunk_table

THREADS = 256
"""Threads of a block; the kernels' launch bounds say the same number."""

MAX_BLOCKS = 2**31 - 1
"""What a grid may have; beyond it blocks take several chunks."""

WORD = 16
"""Bytes of a vector access."""

_MANY_CHUNKS = 1 << 14
_LARGEST_CHUNK = 1 << 30


def lanes_of(itemsizes: Sequence[int]) -> int:
    """Elements that a thread takes at once: 16 bytes of the narrowest buffer."""
    return WORD // min(itemsizes)


def chunks_of(sizes: Sequence[int] | HostArray, lanes: int) -> HostArray:
    """Cut tensors of these sizes into chunks, one a block.

    Small enough to occupy the whole GPU, large enough that the table stays short: a chunk gives each
    thread of a block one word, and is doubled while there are more than some 16 thousand. All but the
    last of a tensor are a power of two long, so all begin alike relative to a word.
    """
    counts = np.asarray(sizes, np.int64)
    length = THREADS * lanes
    while length < _LARGEST_CHUNK and int(counts.sum()) > length * _MANY_CHUNKS:
        length *= 2
    return chunk_table(counts, length)


def state_offset(param_address: int, param_itemsize: int, state_itemsize: int) -> int:
    """Bytes from the last word boundary to a state's begin: as many elements as to its parameter's.

    So the kernel finds words that begin in all buffers at once, also where parameters are views.
    """
    elements = param_address % WORD // param_itemsize
    return elements * state_itemsize % WORD
