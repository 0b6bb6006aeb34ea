"""Adafactor, Algorithms 4 and 5 of arXiv 1804.04235, with torch's bounds in place of the paper's epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.3, "beta2_decay": -0.6, "eps1": 1e-3, "eps2": 0.1, "d": 1.2, "weight_decay": 0.2}

CASES = (Case("everything", _ALL, {"maximize": True}, changes={9: {"lr": 0.5}}),)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    if w.ndim < 2:
        return {"row_var": np.zeros_like(w)}
    return {"row_var": np.zeros(w.shape[:-1]), "col_var": np.zeros((*w.shape[:-2], w.shape[-1]))}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = -g if s["maximize"] else g
    new = t ** s["beta2_decay"]
    size = max(s["eps2"], np.linalg.norm(w.ravel()) / np.sqrt(w.size))
    rate = size * min(s["lr"], t**-0.5)

    def mix(name: str, square: np.ndarray) -> np.ndarray:
        state[name] = state[name] + new * (square - state[name])
        return state[name]

    if w.ndim < 2:
        v = mix("row_var", g * g)
    else:
        row = mix("row_var", (g * g).mean(axis=-1))[..., :, None]
        col = mix("col_var", (g * g).mean(axis=-2))[..., None, :]
        v = row @ col / np.maximum(row.mean(axis=-2, keepdims=True), s["eps1"])
    u = g / np.sqrt(np.maximum(v, s["eps1"] ** 2))
    u = u / max(1.0, np.linalg.norm(u.ravel()) / np.sqrt(u.size) / s["d"])
    return w * (1 - s["lr"] * s["weight_decay"]) - rate * u
