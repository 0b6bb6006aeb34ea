"""L-DoG of arXiv 2302.12022: DoG for each tensor by itself."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.oracles.by_hand import dog

CASES = dog.CASES


def start(w: np.ndarray, **s: Any) -> dict[str, Any]:
    return {**dog.start(w, **s), **dog.start_together(**s)}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    alone = dog.together({"": (w, g, state)}, state, **s)
    return dog.step(w, g, state, t, **{**s, **alone})
