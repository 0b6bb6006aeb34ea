"""CAME, Algorithm 2 of arXiv 2307.02047; of what has fewer than two axes, nothing is factored."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {
    "lr": 0.03,
    "beta1": 0.8,
    "beta2": 0.9,
    "beta3": 0.95,
    "eps1": 1e-6,
    "eps2": 1e-4,
    "weight_decay": 0.3,
}

CASES = (
    Case("clipped", {**_ALL, "clip_threshold": 0.6}, {"maximize": True}, changes={9: {"lr": 0.5}}),
    Case("threshold_above_1", {**_ALL, "clip_threshold": 3.0}, changes={}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    if w.ndim < 2:
        return {"exp_avg": 0 * w, "exp_avg_sq_row": np.zeros_like(w)}
    row, col = np.zeros(w.shape[:-1]), np.zeros((*w.shape[:-2], w.shape[-1]))
    return {
        "exp_avg": 0 * w,
        **{f"exp_avg_{kind}_row": row for kind in ("sq", "res")},
        **{f"exp_avg_{kind}_col": col for kind in ("sq", "res")},
    }


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = -g if s["maximize"] else g

    def estimate(kind: str, beta: float, square: np.ndarray) -> np.ndarray:
        for name, axis in (("row", -1), ("col", -2)):
            old = state[f"exp_avg_{kind}_{name}"]
            state[f"exp_avg_{kind}_{name}"] = beta * old + (1 - beta) * square.mean(axis=axis)
        row = state[f"exp_avg_{kind}_row"][..., :, None]
        return row * state[f"exp_avg_{kind}_col"][..., None, :] / row.mean(axis=-2, keepdims=True)

    square = g * g + s["eps1"]
    if w.ndim < 2:
        v = state["exp_avg_sq_row"] = s["beta2"] * state["exp_avg_sq_row"] + (1 - s["beta2"]) * square
    else:
        v = estimate("sq", s["beta2"], square)
    u = g / np.sqrt(v)
    u = u / max(1.0, np.sqrt(np.mean(u * u)) / s["clip_threshold"])
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * u
    if w.ndim >= 2:
        m = m / np.sqrt(estimate("res", s["beta3"], (u - m) ** 2 + s["eps2"]))
    return w - s["lr"] * s["weight_decay"] * w - s["lr"] * m
