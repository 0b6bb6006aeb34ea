"""SM3-II of arXiv 1901.11150 over rows and columns, with optax's momentum and epsilon."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

CASES = tuple(
    Case(f"momentum_{momentum}", {"lr": 0.2, "momentum": momentum, "eps": eps}, changes={9: {"lr": 0.5}})
    for momentum, eps in ((0.0, 1e-3), (0.7, 0.0))
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    if w.ndim < 2:
        return {"row_max": np.zeros_like(w), "exp_avg": 0 * w}
    return {
        "row_max": np.zeros(w.shape[:-1]),
        "col_max": np.zeros((*w.shape[:-2], w.shape[-1])),
        "exp_avg": 0 * w,
    }


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    if w.ndim < 2:
        nu = state["row_max"] = state["row_max"] + g * g
    else:
        nu = np.minimum(state["row_max"][..., :, None], state["col_max"][..., None, :]) + g * g
        state["row_max"], state["col_max"] = nu.max(axis=-1), nu.max(axis=-2)
    u = np.divide(g, np.sqrt(nu + s["eps"]), out=np.zeros_like(w), where=nu > 0)
    if s["momentum"]:
        u = state["exp_avg"] = s["momentum"] * state["exp_avg"] + (1 - s["momentum"]) * u
    return w - s["lr"] * u
