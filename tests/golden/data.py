"""The data of the golden runs: tensors, gradients, and how a row of numbers holds them.

All of it comes from integer arithmetic alone, so that no library's random stream enters.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

STEPS = 32
RECORDED = (*range(1, 9), 12, 16, 20, 24, 28, 32)
"""Steps after which the parameters are kept: all of the beginning, then every fourth."""

SHAPES: Mapping[str, tuple[int, ...]] = {"w": (2, 2), "b": (), "u": (3,)}
"""The tensors of every run, in the order in which a row of a golden file holds their elements."""

SIZE = 8
"""Elements of all tensors together."""


def _uniform(counter: int) -> float:
    """A number in [-1, 1) from a counter: the finaliser of splitmix64, top 53 bits."""
    mask = (1 << 64) - 1
    z = (counter * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return (z >> 11) * 2.0**-52 - 1.0


def split(row: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors that a row of ``SIZE`` elements holds (copies)."""
    tensors, start = {}, 0
    for name, shape in SHAPES.items():
        size = int(np.prod(shape))
        tensors[name] = row[start : start + size].reshape(shape).copy()
        start += size
    return tensors


def join(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """One row of ``SIZE`` float64 elements out of the tensors."""
    return np.concatenate([np.asarray(tensors[name], dtype=np.float64).reshape(-1) for name in SHAPES])


def parameters() -> dict[str, np.ndarray]:
    """Initial values, float64."""
    return split(np.array([_uniform(i + 1) for i in range(SIZE)]))


def gradients(step: int, *, dense: bool = False) -> dict[str, np.ndarray | None]:
    """Gradients at ``step`` (from 1), float64; they don't depend on the parameters.

    Magnitudes run from 1e-9 to 10, so that where an epsilon stands is seen, with exact zeros between
    them. ``u`` has none at the first step and at every third after it, unless they are ``dense``.
    """
    scales = (1.0, 1e-3, 10.0, 1e-9, 0.1, 0.0, 1e-6)
    row = np.array(
        [_uniform(1000 * step + i) * scales[(3 * step + 5 * i) % len(scales)] for i in range(SIZE)]
    )
    tensors: dict[str, np.ndarray | None] = dict(split(np.array(row)))
    if step % 3 == 1 and not dense:
        tensors["u"] = None
    return tensors
