"""D-Adapted Adam, from the algorithm of arXiv 2301.07733, the inner product as the authors' code has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case
from tests.oracles.by_hand.prodigy import decayed

_ALL = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "d0": 0.02, "weight_decay": 0.2}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}}

CASES = (
    Case("paper", _ALL, changes=_CHANGES),
    Case(
        "everything",
        {**_ALL, "growth_rate": 1.2},
        {"use_bias_correction": True, "decoupled_weight_decay": False},
        changes=_CHANGES,
    ),
    Case("a_rate_of_0", {**_ALL, "lr": 0.0}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "s": 0 * w}


def start_together(**s: Any) -> dict[str, Any]:
    return {"d": s["d0"], "numerator_weighted": 0.0, "k": 0}


def together(tensors: dict[str, Any], shared: dict[str, Any], **s: Any) -> dict[str, Any]:
    d, b3 = shared["d"], np.sqrt(s["beta2"])
    shared["k"] += 1
    rate = d * s["lr"]
    if s["use_bias_correction"]:
        rate *= np.sqrt(1 - s["beta2"] ** shared["k"]) / (1 - s["beta1"] ** shared["k"])
    inner, length = 0.0, 0.0
    for w, g, state in tensors.values():
        g = decayed(w, g, **s)
        inner += np.sum(g * state["s"] / (np.sqrt(state["exp_avg_sq"]) + s["eps"]))
        state["s"] = b3 * state["s"] + (1 - b3) * rate * g
        length += np.sum(np.abs(state["s"]))
        state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * rate * g
        state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * g * g
    r = shared["numerator_weighted"] = b3 * shared["numerator_weighted"] + (1 - b3) * rate * inner
    estimate = r / ((1 - b3) * length) if length else d
    shared["d"] = max(d, min(estimate, d * s["growth_rate"]) if s["limit_growth"] else estimate)
    return {"_rate": rate}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    shrunk = w - s["_rate"] * s["weight_decay"] * w if s["decoupled_weight_decay"] else w
    return shrunk - state["exp_avg"] / (np.sqrt(state["exp_avg_sq"]) + s["eps"])
