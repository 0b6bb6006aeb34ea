"""Runs a staged rule on several threads, and without: ``python -m tests.sanitizers.staged``."""

from __future__ import annotations

import numpy as np

from tests.support.bits import same_bits
from tests.support.handwritten.lamb import Lamb

SIZES = (0, 1, 255, 257, 4095, 4097, 300_001)


def main() -> None:
    random = np.random.default_rng(0)
    for clip in (False, True):
        for dtype in ("float32", "float64"):
            params = [random.standard_normal(n).astype(dtype) for n in SIZES]
            made = Lamb([p.copy() for p in params], backend="cpu", clip=clip)
            reference = Lamb([p.copy() for p in params], backend="numpy", clip=clip)
            for _ in range(5):
                gradients = [random.standard_normal(n).astype(dtype) for n in SIZES]
                for optimizer in (made, reference):
                    optimizer.step(gradients)
            pairs = zip(made.params.values(), reference.params.values(), strict=True)
            assert all(same_bits(a, b) for a, b in pairs)
    print("done")


if __name__ == "__main__":
    main()
