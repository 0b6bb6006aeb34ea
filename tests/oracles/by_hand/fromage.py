"""Fromage, Algorithm 1 of arXiv 2002.03432, and the bound of the authors' code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

CASES = (
    Case("large_steps", {"lr": 3.0}),
    Case("bound_changes_later", {"lr": 0.5, "p_bound": 0.9}, changes={7: {"p_bound": 100.0}}),
)


def start(w: np.ndarray, **s: Any) -> dict[str, Any]:
    return {"bound": s["p_bound"] * np.linalg.norm(w.reshape(-1))}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    size, slope = np.linalg.norm(w.reshape(-1)), np.linalg.norm(g.reshape(-1))
    direction = size * (g / slope) if size and slope else g
    new = (w - s["lr"] * direction) / np.hypot(1.0, s["lr"])
    if s["bounded"]:
        state["max_norm"] = state["bound"]
        new_size = np.linalg.norm(new.reshape(-1))
        new = new * min(1.0, state["bound"] / new_size) if new_size else new
    return new
