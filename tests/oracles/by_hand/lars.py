"""LARS, Algorithm 1 of arXiv 1708.03888, without and with timm's and LARC's changes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.4, "momentum": 0.8, "trust_coefficient": 0.06, "weight_decay": 0.3}

CASES = (
    Case("paper", _ALL),
    Case("nesterov", _ALL, {"nesterov": True}),
    Case("clipped", _ALL, {"trust_clip": True}, changes={9: {"lr": 0.01}}),
    Case("sgd", {**_ALL, "lr": 0.02}, {"adapt": False}),
    Case("a_rate_of_0", {**_ALL, "lr": 0.0}, {"trust_clip": True}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"momentum_buffer": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    size_w, size_g = np.sqrt(np.sum(w * w)), np.sqrt(np.sum(g * g))
    local = 1.0
    if s["adapt"] and size_w > 0 and size_g > 0:
        local = s["trust_coefficient"] * size_w / (size_g + s["weight_decay"] * size_w + s["eps"])
    if s["adapt"] and s["trust_clip"]:
        local = min(local / s["lr"], 1.0) if s["lr"] else 1.0
    inside, outside = (s["lr"], 1.0) if s["lr_in_momentum"] else (1.0, s["lr"])
    v = inside * local * (g + s["weight_decay"] * w)
    if s["use_momentum"]:
        new = state["momentum_buffer"] = s["momentum"] * state["momentum_buffer"] + v
        v = v + s["momentum"] * new if s["nesterov"] else new
    return w - outside * v
