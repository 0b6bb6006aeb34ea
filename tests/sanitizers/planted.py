"""Runs one planted fault of lion's kernel: ``python -m tests.sanitizers.planted FAULT``."""

from __future__ import annotations

import sys

import numpy as np

from solvergen.verify import find_disagreement
from tests.unit.verify.support import faulty

_IN_A_CHUNK = r"    \(void\)sg_row;"
_IN_THE_LOOP = r"void \*const \*buffers = .*;"

FAULTS = {
    "none": (_IN_A_CHUNK, "    (void)sg_row;"),
    "read behind": (_IN_A_CHUNK, "    if (((volatile sg_param *)sg_param_at)[sg_count] == 3) return;"),
    # A whole word before: marks are for groups of eight bytes.
    "read before": (_IN_A_CHUNK, "    if (((volatile sg_param *)sg_param_at)[-8] == 3) return;"),
    "overflow": (
        _IN_A_CHUNK,
        "    volatile int32_t most = INT32_MAX; volatile int32_t sum = most + most; (void)sum;",
    ),
    "shift": (_IN_A_CHUNK, "    volatile int32_t one = 1; if ((one << (sg_count + 32)) == 3) return;"),
    "cast": (_IN_A_CHUNK, "    volatile double huge = 1e20; if ((int32_t)huge == 3) return;"),
    "race": (_IN_THE_LOOP, "\\g<0> *(volatile float *)buffers[2] += 1.0f;"),
}


def main(fault: str) -> None:
    right, wrong = FAULTS[fault]
    with faulty("lion", "kernel.c", right, wrong) as optimizer:
        if fault in ("race", "none"):
            # Many chunks, so that several threads take part.
            params = {"w": np.zeros(1 << 20, np.float32)}
            made = optimizer(params, backend="cpu")
            for _ in range(40):
                made.step({"w": np.ones(1 << 20, np.float32)})
        if fault != "race":
            print(find_disagreement(optimizer, "cpu", examples=20, dtypes=[("float32", "float32")]))


if __name__ == "__main__":
    main(sys.argv[1])
