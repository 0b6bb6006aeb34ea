"""Rules that torch has no fused kernel for, beside pytorch_optimizer's and their traffic limits.

    python benchmarks/beside_pytorch_optimizer.py [ELEMENTS] [TENSORS] [ROUNDS]

LAMB (without global clipping), Lion and Adan with equal hyperparameters, in float32. Every round runs each
once, in turns, with new gradients; only ratios mean anything. Needs torch and pytorch_optimizer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from solvergen import optimizers
from solvergen.bench.contenders import ours, traffic_limit
from solvergen.bench.sizes import Size, parse_sizes
from solvergen.bench.timing import Contender, Schedule, interleave

RULES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "LAMB": (
        {"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "max_grad_norm": 0.0},
        {"lr": 1e-3, "betas": (0.9, 0.999), "weight_decay": 0.01, "max_grad_norm": 0.0},
    ),
    "Lion": (
        {"lr": 1e-4, "beta1": 0.9, "beta2": 0.99, "weight_decay": 0.01},
        {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0.01},
    ),
    "Adan": (
        {"lr": 1e-3, "beta1": 0.98, "beta2": 0.92, "beta3": 0.99, "weight_decay": 0.01},
        {"lr": 1e-3, "betas": (0.98, 0.92, 0.99), "weight_decay": 0.01},
    ),
}
"""Class name, our hyperparameters, theirs."""


def peer(name: str, arguments: Mapping[str, Any], draw: Callable[[], list[np.ndarray]]) -> Contender:
    """pytorch_optimizer's."""
    import pytorch_optimizer
    import torch

    params = [torch.from_numpy(array).requires_grad_(True) for array in draw()]
    optimizer = getattr(pytorch_optimizer, name.capitalize())(params, **arguments)

    def receive(gradients: list[np.ndarray]) -> None:
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = torch.from_numpy(gradient)

    return Contender("pytorch_optimizer", lambda _: optimizer.step(), receive)


def measure(name: str, size: Size, rounds: int) -> None:
    """Time one rule and print its figures."""

    def draw() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(size.elements, dtype=np.float32) for _ in range(size.tensors)]

    cls = getattr(optimizers, name)
    here, there = RULES[name]
    probe = cls([np.zeros(1, np.float32)], backend="cpu", **here)
    contenders = {
        "traffic limit": traffic_limit(cls, dict(probe.groups[0].options), draw),
        "solvergen": ours(cls, here, "cpu", draw),
        "pytorch_optimizer": peer(name, there, draw),
    }
    seconds = interleave(contenders, size, Schedule(rounds, 1), draw)
    print(f"{name}: {size.total:,} elements in {size.tensors} tensors, float32, median of {rounds}")
    for other, times in seconds.items():
        print(f"  {other:>17}  {1e3 * np.median(times):8.2f} ms")
    for other in ("traffic limit", "pytorch_optimizer"):
        ratio = np.median(seconds["solvergen"] / seconds[other])
        print(f"  solvergen takes {ratio:.2f} x {other}, median of the rounds' ratios")


def main() -> None:
    """Measure every rule."""
    given = [int(argument) for argument in sys.argv[1:4]]
    elements, tensors, rounds = [*given, *(1 << 25, 100, 15)[len(given) :]]
    size = parse_sizes(f"{tensors}x{elements // tensors}")[0]
    for name in RULES:
        measure(name, size, rounds)


if __name__ == "__main__":
    main()
