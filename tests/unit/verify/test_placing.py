"""Where the arrays of a run lie: the example alone decides, and no allocator."""

from __future__ import annotations

import numpy as np
import pytest

from solvergen.runtime.buffers import address_of
from solvergen.runtime.dtypes import numpy_dtype
from solvergen.verify import machines
from solvergen.verify.dtypes import LAYOUTS
from solvergen.verify.running import LINE, MARGIN, Placed


@pytest.mark.parametrize("dtype", LAYOUTS)
@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_the_offset_decides_where_an_array_begins(dtype: str, size: int) -> None:
    backend = machines.machine("numpy")
    contents = (np.arange(size) % 100).astype(numpy_dtype(dtype))
    kept = []
    for offset in (0, 1, 3, 8) * 8:  # the allocator would find each place of sixteen bytes in a line
        placed = Placed(backend, "an array", contents, offset)
        kept.append(placed)
        begins = address_of(placed.array) if size else address_of(placed.margins[1])
        assert begins % LINE == offset * contents.itemsize % LINE
        assert placed.array.tobytes() == contents.tobytes()
        before, behind = placed.margins
        assert before.size >= MARGIN + offset
        assert behind.size >= MARGIN
        placed.check_unchanged(0)
