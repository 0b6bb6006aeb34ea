"""C-AdamW of arXiv 2411.16085, and with the mean of the authors' code."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4, "weight_decay": 0.3}

CASES = (
    Case("paper", _ALL),
    Case("xi", {**_ALL, "xi": 0.25}, changes={9: {"xi": 8.0, "lr": 0.5}}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * g
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * g * g
    u = m / (1 - s["beta1"] ** t) / (np.sqrt(v / (1 - s["beta2"] ** t)) + s["eps"])
    mask = np.where(u * g > 0, 1.0, 0.0)
    scale = 1 / max(mask.mean(), 1e-3) if s["clamp_mean"] else w.size / (mask.sum() + s["xi"])
    return w - s["lr"] * scale * u * mask - s["lr"] * s["weight_decay"] * w
