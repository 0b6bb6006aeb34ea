"""Generalized optimistic gradient descent, arXiv 1901.08511, from the list of all gradients."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"all": []}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    state["all"] = [*state["all"], g]
    state["prev_grad"] = g
    assert len(state["all"]) == t
    before = state["all"][max(t - 2, 0)]
    return w - s["lr"] * (s["alpha"] + s["beta"]) * g + s["lr"] * s["beta"] * before
