"""Runs a rule that reduces along rows and columns: ``python -m tests.sanitizers.lines``."""

from __future__ import annotations

import numpy as np

from tests.support.bits import same_bits
from tests.support.line_rule import liner

SHAPES = ((), (5,), (1, 257), (65, 1), (3, 70, 300), (0, 4), (4, 0), (200, 129), (70, 2100), (5_000,))


def main() -> None:
    random = np.random.default_rng(0)
    params = [np.array(random.standard_normal(shape), np.float32) for shape in SHAPES]
    made, reference = (liner()([p.copy() for p in params], backend=b) for b in ("cpu", "numpy"))
    for _ in range(2):
        gradients = [np.array(random.standard_normal(shape), np.float32) for shape in SHAPES]
        for optimizer in (made, reference):
            optimizer.step(gradients)
    pairs = zip(made.params.values(), reference.params.values(), strict=True)
    assert all(same_bits(a, b) for a, b in pairs)
    print("done")


if __name__ == "__main__":
    main()
