"""How long the tail of a training step takes: clipping by the norm of all, AdamW, an average of parameters.

    python benchmarks/tail.py [ELEMENTS] [TENSORS] [ROUNDS]

Ours is one step of a wrapped optimizer, two passes over memory; torch's best is clip_grad_norm_ (foreach),
fused AdamW and a foreach lerp. Each round runs both, one after the other, over the same sizes in float32, so
that what else the machine does falls on both; only the ratio means something. Without torch only ours is
measured.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from solvergen import Wrappers
from solvergen.optimizers import AdamW

LR, DECAY, CLIP, AVERAGE = 1e-3, 0.01, 1.0, 0.999


def arrays(elements: int, tensors: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Parameters and gradients of ``tensors`` equal sizes."""
    rng = np.random.default_rng(0)
    size = elements // tensors
    params, gradients = (
        [rng.standard_normal(size, dtype=np.float32) for _ in range(tensors)] for _ in range(2)
    )
    return params, gradients


def ours(elements: int, tensors: int) -> Callable[[], object]:
    """A step of the wrapped optimizer."""
    params, gradients = arrays(elements, tensors)
    wrappers = Wrappers(clip_grad_norm=CLIP, clip_eps=1e-6, average=AVERAGE)
    optimizer = AdamW(params, lr=LR, weight_decay=DECAY, backend="cpu", wrappers=wrappers)
    return lambda: optimizer.step(gradients)


def torchs(elements: int, tensors: int) -> Callable[[], object]:
    """The same by torch."""
    import torch

    params, gradients = (list(map(torch.from_numpy, part)) for part in arrays(elements, tensors))
    averages = [param.clone() for param in params]
    for param, gradient in zip(params, gradients, strict=True):
        param.requires_grad_(True)
        param.grad = gradient
    optimizer = torch.optim.AdamW(params, lr=LR, weight_decay=DECAY, fused=True)

    def tail() -> None:
        torch.nn.utils.clip_grad_norm_(params, CLIP, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, params, 1 - AVERAGE)

    return tail


def main() -> None:
    """Measure and print."""
    given = [int(argument) for argument in sys.argv[1:4]]
    elements, tensors, rounds = [*given, *(1 << 24, 50, 15)[len(given) :]]
    contenders = {"solvergen": ours(elements, tensors)}
    if find_spec("torch"):
        contenders["torch"] = torchs(elements, tensors)
    else:
        print("torch isn't installed: nothing to compare with")
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 2):
        for name, tail in contenders.items():
            begin = time.perf_counter()
            tail()
            if number >= 2:  # the first rounds compile kernels and allocate states
                seconds[name].append(time.perf_counter() - begin)
    print(f"{elements:,} elements in {tensors} tensors, float32, median of {rounds}")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, median in medians.items():
        print(f"{name:>10}  {1e3 * median:8.2f} ms  {median / medians['solvergen']:6.2f}")
    if "torch" in medians:
        ratios = [t / s for s, t in zip(seconds["solvergen"], seconds["torch"], strict=True)]
        print(f"torch takes {statistics.median(ratios):.2f} times as long, median of the rounds' ratios")


if __name__ == "__main__":
    main()
