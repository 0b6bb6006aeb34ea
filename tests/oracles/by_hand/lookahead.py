"""Lookahead, arXiv 1907.08610, algorithm 1: the inner loop begins at the slow weights at each update."""

from __future__ import annotations

from typing import Any

import numpy as np


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"slow": w, "inner": [], "momentum_buffer": np.zeros_like(w)}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    decayed = g + s["weight_decay"] * w
    state["momentum_buffer"] = s["momentum"] * state["momentum_buffer"] + decayed
    state["inner"].append(s["lr"] * state["momentum_buffer"])
    fast = state["slow"]
    for change in state["inner"]:
        fast = fast - change
    if len(state["inner"]) < s["k"]:
        return fast
    state["slow"] = (1 - s["alpha"]) * state["slow"] + s["alpha"] * fast
    state["inner"] = []
    assert t % s["k"] == 0
    return state["slow"]
