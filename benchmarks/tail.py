"""How long the tail of a training step takes: clipping by the norm of all, AdamW, an average of parameters.

    python benchmarks/tail.py [ELEMENTS] [TENSORS] [ROUNDS]

Ours is one step of a wrapped optimizer, two passes over memory; torch's best is clip_grad_norm_ (foreach),
fused AdamW and a foreach lerp; the limit is a loop that moves what the two passes must move. Every round runs
each once, in turns, with new gradients, in float32; only ratios mean anything. Making the gradients gives the
threads of the one before time to go to sleep. Without torch only ours and the limit are measured.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from solvergen import Wrappers
from solvergen.bench.contenders import traffic_limit
from solvergen.bench.sizes import Size, parse_sizes
from solvergen.bench.timing import Contender, Schedule, interleave
from solvergen.optimizers import AdamW

LR, DECAY, CLIP, AVERAGE = 1e-3, 0.01, 1.0, 0.999
NAMES = ("traffic limit", "solvergen", "torch")


def arrays(size: Size) -> list[np.ndarray]:
    """Tensors of ``size``."""
    rng = np.random.default_rng(0)
    return [rng.standard_normal(size.elements, dtype=np.float32) for _ in range(size.tensors)]


def ours(size: Size) -> tuple[Contender, Contender]:
    """The traffic limit, and a step of the wrapped optimizer."""
    wrappers = Wrappers(clip_grad_norm=CLIP, clip_eps=1e-6, average=AVERAGE)
    optimizer = AdamW(arrays(size), lr=LR, weight_decay=DECAY, backend="cpu", wrappers=wrappers)
    options = dict(optimizer.groups[0].options)
    limit = traffic_limit(type(optimizer), options, lambda: arrays(size))
    return limit, Contender("solvergen", optimizer.step, lambda gradients: gradients)


def torchs(size: Size) -> Contender:
    """The same by torch."""
    import torch

    params = [torch.from_numpy(array).requires_grad_(True) for array in arrays(size)]
    averages = [param.detach().clone() for param in params]
    optimizer = torch.optim.AdamW(params, lr=LR, weight_decay=DECAY, fused=True)

    def receive(gradients: list[np.ndarray]) -> None:
        for param, gradient in zip(params, gradients, strict=True):
            param.grad = torch.from_numpy(gradient)

    def tail(_: Any) -> None:
        torch.nn.utils.clip_grad_norm_(params, CLIP, foreach=True)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, params, 1 - AVERAGE)

    return Contender("torch", tail, receive)


def main() -> None:
    """Measure and print."""
    given = [int(argument) for argument in sys.argv[1:4]]
    elements, tensors, rounds = [*given, *(1 << 24, 50, 15)[len(given) :]]
    size = parse_sizes(f"{tensors}x{elements // tensors}")[0]
    found = [*ours(size), *([torchs(size)] if find_spec("torch") else [])]
    if len(found) < len(NAMES):
        print("torch isn't installed: nothing to compare with")
    contenders = dict(zip(NAMES, found, strict=False))
    seconds = interleave(contenders, size, Schedule(rounds, 1), lambda: arrays(size))
    print(f"{size.total:,} elements in {tensors} tensors, float32, median of {rounds}")
    for name, times in seconds.items():
        print(f"{name:>13}  {1e3 * np.median(times):8.2f} ms  fastest {1e3 * times.min():8.2f} ms")
    for name in contenders:
        if name != "solvergen":
            ratio = np.median(seconds["solvergen"] / seconds[name])
            print(f"solvergen takes {ratio:.2f} x {name}, median of the rounds' ratios")


if __name__ == "__main__":
    main()
