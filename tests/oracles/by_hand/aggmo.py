"""Aggregated momentum, equation 5 of arXiv 1804.00325."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"lr": 0.03, "beta1": 0.5, "beta2": 0.8, "beta3": 0.97, "beta4": 0.999, "weight_decay": 0.05}

CASES = (
    Case(
        "betas_change",
        _ALL,
        {"use_beta1": True, "use_beta4": True},
        changes={6: {"beta1": 0.0, "beta2": 1.1, "beta4": 0.9}},
    ),
    Case("turned_on", {**_ALL, "beta1": 0.0}, {"use_beta1": True}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {f"momentum_buffer{i}": 0 * w for i in range(1, 5)}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    g = (-g if s["maximize"] else g) + s["weight_decay"] * w
    velocities = []
    for i in range(1, 2 + s["use_beta3"] + s["use_beta4"] + 1):
        state[f"momentum_buffer{i}"] = s[f"beta{i}"] * state[f"momentum_buffer{i}"] + g
        velocities.append(state[f"momentum_buffer{i}"])
    return w - s["lr"] * np.mean(velocities, axis=0)
