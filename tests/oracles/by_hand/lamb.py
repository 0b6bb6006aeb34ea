"""LAMB, Algorithm 2 of arXiv 1904.00962 with phi the identity, and NVIDIA's clipping before it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.05, "beta1": 0.8, "beta2": 0.95, "eps": 1e-4, "weight_decay": 0.3}

CASES = (
    Case("clipped", {**_ALL, "max_grad_norm": 0.7}, {"trust_clip": True}),
    Case("clipped_later", {**_ALL, "max_grad_norm": 30.0}, changes={9: {"max_grad_norm": 0.01}}),
    Case("could_be_clipped", _ALL, {"clip_grad_norm": True}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w}


def together(tensors: dict[str, Any], shared: dict[str, Any], **s: Any) -> dict[str, float]:
    size = np.linalg.norm(np.concatenate([g.reshape(-1) for _, g, _ in tensors.values()]))
    allowed = s["max_grad_norm"]
    return {"_factor": allowed / size if s["clip_grad_norm"] and 0 < allowed < size else 1.0}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = g * s["_factor"]
    m = state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * g
    v = state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * g * g
    if s["bias_correction"]:
        m, v = m / (1 - s["beta1"] ** t), v / (1 - s["beta2"] ** t)
    r = m / (np.sqrt(v) + s["eps"]) + s["weight_decay"] * w
    ratio = 1.0
    if s["adapt"] and np.any(w) and np.any(r):
        ratio = np.linalg.norm(w.reshape(-1)) / np.linalg.norm(r.reshape(-1))
    return w - s["lr"] * (min(ratio, 1.0) if s["adapt"] and s["trust_clip"] else ratio) * r
