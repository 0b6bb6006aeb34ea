"""The runs that the golden trajectories record: data, hyperparameters, options.

Both the script that makes the trajectories (with torch and optax) and the tests that hold the
generated optimizers to them read this table. The data come from integer arithmetic alone, so that
no library's random stream enters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

STEPS = 32
RECORDED = (*range(1, 9), 12, 16, 20, 24, 28, 32)
"""Steps after which the parameters are kept: all of the beginning, then every fourth."""

SHAPES: Mapping[str, tuple[int, ...]] = {"w": (2, 2), "b": (), "u": (3,)}
"""The tensors of every run, in the order in which a row of a golden file holds their elements."""

SIZE = 8
"""Elements of all tensors together."""


@dataclass(frozen=True)
class Case:
    """One run: an optimizer with its settings, under the names that the specs use."""

    id: str
    hyperparameters: Mapping[str, float]
    options: Mapping[str, bool]

    def at(self, step: int) -> dict[str, float]:
        """Hyperparameters in force at ``step`` (from 1): the rate drops tenfold at step 11, the decay
        doubles at 17, the momentum (or beta1) falls at 23. What is zero stays zero."""
        values = dict(self.hyperparameters)
        if step >= 11:
            values["lr"] *= 0.1
        if step >= 17:
            values["weight_decay"] *= 2.0
        if step >= 23:
            for name in ("momentum", "beta1"):
                if name in values:
                    values[name] *= 0.9
        return values


def _sgd() -> Iterator[Case]:
    momenta = {
        "plain": (0.0, 0.0, False),
        "dampening_alone": (0.0, 0.3, False),
        "momentum": (0.85, 0.0, False),
        "dampened": (0.85, 0.3, False),
        "nesterov": (0.85, 0.0, True),
    }
    for name, decay, maximize in product(momenta, (0.0, 0.07), (False, True)):
        momentum, dampening, nesterov = momenta[name]
        yield Case(
            f"{name}{'_decay' if decay else ''}{'_maximize' if maximize else ''}",
            {"lr": 0.03, "momentum": momentum, "dampening": dampening, "weight_decay": decay},
            {"nesterov": nesterov, "maximize": maximize},
        )


def _adam() -> Iterator[Case]:
    for amsgrad, decay, maximize in product((False, True), (0.0, 0.07), (False, True)):
        yield Case(
            f"{'amsgrad' if amsgrad else 'adam'}{'_decay' if decay else ''}{'_maximize' if maximize else ''}",
            {"lr": 0.02, "beta1": 0.8, "beta2": 0.95, "eps": 1e-6, "weight_decay": decay},
            {"amsgrad": amsgrad, "maximize": maximize},
        )


def _lion() -> Iterator[Case]:
    for decay in (0.0, 0.07):
        yield Case(
            f"lion{'_decay' if decay else ''}",
            {"lr": 0.01, "beta1": 0.85, "beta2": 0.96, "weight_decay": decay},
            {},
        )


CASES: Mapping[str, tuple[Case, ...]] = {
    "sgd": tuple(_sgd()),
    "adam": tuple(_adam()),
    "lion": tuple(_lion()),
}


def _uniform(counter: int) -> float:
    """A number in [-1, 1) from a counter: the finaliser of splitmix64, top 53 bits."""
    mask = (1 << 64) - 1
    z = (counter * 0x9E3779B97F4A7C15) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    z ^= z >> 31
    return (z >> 11) * 2.0**-52 - 1.0


def split(row: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors that a row of ``SIZE`` elements holds (copies)."""
    tensors, start = {}, 0
    for name, shape in SHAPES.items():
        size = int(np.prod(shape))
        tensors[name] = row[start : start + size].reshape(shape).copy()
        start += size
    return tensors


def join(tensors: Mapping[str, np.ndarray]) -> np.ndarray:
    """One row of ``SIZE`` float64 elements out of the tensors."""
    return np.concatenate([np.asarray(tensors[name], dtype=np.float64).reshape(-1) for name in SHAPES])


def parameters() -> dict[str, np.ndarray]:
    """Initial values, float64."""
    return split(np.array([_uniform(i + 1) for i in range(SIZE)]))


def gradients(step: int) -> dict[str, np.ndarray | None]:
    """Gradients at ``step`` (from 1), float64; they don't depend on the parameters.

    Magnitudes run from 1e-9 to 10, so that where an epsilon stands is seen, with exact zeros between
    them. ``u`` has none at the first step and at every third after it.
    """
    scales = (1.0, 1e-3, 10.0, 1e-9, 0.1, 0.0, 1e-6)
    row = np.array(
        [_uniform(1000 * step + i) * scales[(3 * step + 5 * i) % len(scales)] for i in range(SIZE)]
    )
    tensors: dict[str, np.ndarray | None] = dict(split(np.array(row)))
    if step % 3 == 1:
        tensors["u"] = None
    return tensors
