"""AdaGrad with one number for each index of the first axis, as FBGEMM's tables of embeddings have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.3, "eps": 1e-2, "initial_accumulator_value": 0.2, "weight_decay": 0.1}

CASES = (
    Case("plain", {"lr": 0.1}, changes={}),
    Case("everything", _ALL, {"maximize": True}, changes={9: {"lr": 0.5}}),
)


def start(w: np.ndarray, **s: Any) -> dict[str, Any]:
    return {"row_sum": np.full(w.shape[:1], s["initial_accumulator_value"], float)}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = (-g if s["maximize"] else g) + s["weight_decay"] * w
    own = np.reshape(g, (*w.shape[:1], -1))
    state["row_sum"] = state["row_sum"] + (own * own).mean(axis=-1)
    divisor = np.sqrt(state["row_sum"]) + s["eps"]
    return w - s["lr"] * g / np.reshape(divisor, (*w.shape[:1], *[1] * (w.ndim - 1)))
