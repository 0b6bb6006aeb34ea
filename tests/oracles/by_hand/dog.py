"""DoG of arXiv 2302.12022, its distances and gradients as lists, and the average of arXiv 1212.1824."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.golden.case import Case

_ALL = {"reps_rel": 0.1, "eps": 0.5, "weight_decay": 0.2}

CASES = (
    Case("missing_gradients", _ALL, {"average": True}, changes={11: {"lr": 0.5}, 17: {"weight_decay": 2.0}}),
    Case("plain_mean", {**_ALL, "gamma": 0.0}, {"average": True}, changes={13: {"eps": 100.0}}),
)


def start(w: np.ndarray, **_: Any) -> dict[str, Any]:
    return {"x0": w.copy(), "all": []}


def start_together(**_: Any) -> dict[str, Any]:
    return {"distances": [], "squares": []}


def together(tensors: dict[str, Any], shared: dict[str, Any], **s: Any) -> dict[str, Any]:
    def length(parts: list[np.ndarray]) -> float:
        return float(np.linalg.norm(np.concatenate([part.reshape(-1) for part in parts])))

    every = tensors.values()
    if not shared["distances"]:
        shared["distances"] = [s["reps_rel"] * (1 + length([w for w, _, _ in every]))]
    shared["distances"] = [*shared["distances"], length([w - state["x0"] for w, _, state in every])]
    shared["squares"] = [*shared["squares"], length([g + s["weight_decay"] * w for w, g, _ in every]) ** 2]
    shared["max_distance"], shared["grad_sum_sq"] = max(shared["distances"]), sum(shared["squares"])
    return {"_rate": s["lr"] * shared["max_distance"] / np.sqrt(shared["grad_sum_sq"] + s["eps"])}


def step(w: np.ndarray, g: np.ndarray, state: dict[str, Any], t: int, **s: Any) -> np.ndarray:
    new = w - s["_rate"] * (g + s["weight_decay"] * w)
    state["all"] = [*state["all"], new]
    state["average_param"] = average(state["all"], s["gamma"])
    return new


def average(iterates: list[np.ndarray], gamma: float) -> Any:
    """Their mean, that of iterate i by the weight that later ones leave of (gamma + 1)/(i + gamma)."""
    shares = [(gamma + 1) / (i + gamma) for i in range(1, len(iterates) + 1)]
    weights = [share * np.prod([1 - later for later in shares[i + 1 :]]) for i, share in enumerate(shares)]
    return sum(weight * x for weight, x in zip(weights, iterates, strict=True))
