"""FTRL-Proximal, Algorithm 1 of "Ad Click Prediction: a View from the Trenches" (KDD 2013).

Beyond the paper, as Keras has it: squares are summed from a start, the power of the learning rate can be
another than -1/2, and an L2 term of the loss goes into the gradients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_PAPER = {"lr": 0.3, "beta": 1.0, "l1": 0.05, "l2": 0.2, "initial_accumulator": 0.0}

CASES = (
    Case("paper", _PAPER),
    Case("paper_without_beta", {**_PAPER, "beta": 0.0, "l2": 0.0}),
    Case("power", {**_PAPER, "lr_power": -0.8}),
)


def start(w: np.ndarray, **s: Any) -> dict[str, Any]:
    return {"accumulator": np.full_like(w, s["initial_accumulator"]), "linear": 0 * w}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    alpha, power, l1 = s["lr"], -s.get("lr_power", -0.5), s["l1"]
    n = state["accumulator"]
    sigma = ((n + g * g) ** power - n**power) / alpha
    state["linear"] = state["linear"] + g + s.get("l2_shrinkage", 0) * w - sigma * w
    state["accumulator"] = n + g * g
    z, new = state["linear"], np.zeros_like(w)
    for i in np.ndindex(w.shape):
        if abs(z[i]) > l1:
            rate = 1 / ((s["beta"] + state["accumulator"][i] ** power) / alpha + s["l2"])
            new[i] = -rate * (z[i] - np.sign(z[i]) * l1)
    return new
