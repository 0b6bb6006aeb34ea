"""StableAdamW, Algorithm 2 of arXiv 2304.13013, with the usual moments and their correction apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.03, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "weight_decay": 0.3}

CASES = (
    Case("threshold_below_1", {**_ALL, "clip_threshold": 0.4}, changes={9: {"lr": 0.5}}),
    Case("threshold_above_1", {**_ALL, "clip_threshold": 1.3}, changes={}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = -g if s["maximize"] else g
    # Each keeps what it has of weight: corrected by all of it before, and again after.
    for name, beta, x in (("exp_avg", s["beta1"], g), ("exp_avg_sq", s["beta2"], g * g)):
        raw = beta * state[name] * (1 - beta ** (t - 1)) + (1 - beta) * x
        state[name] = raw / (1 - beta**t)
    m, u = state["exp_avg"], state["exp_avg_sq"]
    rms = np.sqrt(np.mean(g * g / np.maximum(u, s["eps"] * s["eps"])))
    rate = s["lr"] / max(1.0, rms / s["clip_threshold"])
    return w - rate * s["weight_decay"] * w - rate * m / (np.sqrt(u) + s["eps"])
