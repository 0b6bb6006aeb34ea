"""Prodigy for Adam, arXiv 2306.06101, with the factors 1 - beta3 that the authors' code leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3, "d0": 0.02, "weight_decay": 0.2}
_CHANGES = {11: {"lr": 0.5}, 17: {"weight_decay": 2.0}}

CASES = (
    Case("paper", _ALL, changes=_CHANGES),
    Case(
        "everything",
        {**_ALL, "beta3": 0.9, "d_coef": 1.4, "growth_rate": 1.2},
        {"use_bias_correction": True, "decoupled_weight_decay": False, "safeguard_warmup": True},
        changes=_CHANGES,
    ),
    Case("a_rate_of_0", {**_ALL, "lr": 0.0}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"exp_avg": 0 * w, "exp_avg_sq": 0 * w, "s": 0 * w, "p0": w.copy()}


def start_together(**s: Any) -> dict[str, Any]:
    return {"d": s["d0"], "d_max": s["d0"], "d_numerator": 0.0, "k": 0}


def decayed(w: np.ndarray, g: np.ndarray, **s: Any) -> np.ndarray:
    return g if s["decoupled_weight_decay"] else g + s["weight_decay"] * w


def together(tensors: dict[str, Any], shared: dict[str, Any], **s: Any) -> dict[str, Any]:
    d, d0, b3 = shared["d"], s["d0"], s["beta3"] or np.sqrt(s["beta2"])
    shared["k"] += 1
    rate = d * s["lr"]
    if s["use_bias_correction"]:
        rate *= np.sqrt(1 - s["beta2"] ** shared["k"]) / (1 - s["beta1"] ** shared["k"])
    weight = d if s["safeguard_warmup"] else rate
    inner, length = 0.0, 0.0
    for w, g, state in tensors.values():
        g = decayed(w, g, **s)
        inner += np.sum(g * (state["p0"] - w))
        # As in the paper; the code's s is this over (1 - beta3)*d0.
        of_paper = b3 * ((1 - b3) * d0 * state["s"]) + (1 - b3) * d * weight * g
        state["s"] = of_paper / ((1 - b3) * d0)
        length += np.sum(np.abs(of_paper))
        state["exp_avg"] = s["beta1"] * state["exp_avg"] + (1 - s["beta1"]) * d * g
        state["exp_avg_sq"] = s["beta2"] * state["exp_avg_sq"] + (1 - s["beta2"]) * (d * g) ** 2
    r = b3 * ((1 - b3) * d0 * shared["d_numerator"]) + (1 - b3) * d * rate * inner
    shared["d_numerator"] = r / ((1 - b3) * d0)
    estimate = s["d_coef"] * r / length if length else d
    if s["limit_growth"]:
        beginning = max(d, estimate) if d == d0 else d
        shared["d_max"] = max(shared["d_max"], estimate)
        shared["d"] = min(shared["d_max"], beginning * s["growth_rate"])
    else:
        shared["d"] = max(d, estimate)
    return {"_rate": rate, "_d": shared["d"]}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    shrunk = w - s["_rate"] * s["weight_decay"] * w if s["decoupled_weight_decay"] else w
    return shrunk - s["_rate"] * state["exp_avg"] / (np.sqrt(state["exp_avg_sq"]) + s["_d"] * s["eps"])
