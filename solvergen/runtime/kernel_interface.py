"""What the runtime and the kernels agree on, the native ones and those for GPUs: macros and chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from solvergen.runtime.arrays import HostArray
from solvergen.runtime.dtypes import STORAGE_TYPES

CHUNK = np.dtype([("tensor", np.int32), ("count", np.int32), ("start", np.int64)])
"""One run of elements of one tensor: ``sg_chunk`` in the kernels."""


def update_defines(param_dtype: str, grad_dtype: str, options: Mapping[str, bool]) -> dict[str, int]:
    """The macros that an update's text is compiled with."""
    return {
        "SG_PARAM": STORAGE_TYPES[param_dtype].code,
        "SG_GRAD": STORAGE_TYPES[grad_dtype].code,
        **{f"SG_OPTION_{name}": int(value) for name, value in options.items()},
    }


def chunk_table(
    sizes: Sequence[int] | HostArray, chunk_size: int, heads: HostArray | None = None
) -> HostArray:
    """Runs of at most ``chunk_size`` elements that cover tensors of these sizes, in order, as ``CHUNK``.

    Empty tensors have none. A tensor of several chunks begins with a short one of as many elements as
    ``heads`` says for it, if that is not 0.
    """
    sizes = np.asarray(sizes, np.int64)
    heads = np.zeros_like(sizes) if heads is None else np.where(sizes > chunk_size, heads, 0)
    counts = -(-(sizes - heads) // chunk_size) + (heads > 0)
    total = int(counts.sum())
    chunks = np.zeros(total, CHUNK)
    chunks["tensor"] = np.repeat(np.arange(len(sizes)), counts)
    places = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    head = np.repeat(heads, counts)
    starts = np.where(head > 0, head + (places - 1) * chunk_size, places * chunk_size)
    chunks["start"] = np.maximum(starts, 0)
    ends = np.minimum(starts + chunk_size, np.repeat(sizes, counts))
    chunks["count"] = ends - chunks["start"]
    return chunks
