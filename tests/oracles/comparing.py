"""How trajectories are compared: within a fraction of each tensor's largest magnitude."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def assert_near(found: Any, expected: Any, what: str, *, tolerance: float = 1e-12) -> None:
    """Fail if any element is off by more than ``tolerance`` times the largest magnitude of ``expected``."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape, what
    assert np.isfinite(expected).all(), what
    if expected.size:
        error = np.abs(found - expected).max()  # NaN fails the comparison below
        assert error <= tolerance * np.abs(expected).max(), f"{what}: off by {error}"
