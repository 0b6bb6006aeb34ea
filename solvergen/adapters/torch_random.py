"""Where torch's random numbers are."""

from __future__ import annotations

import torch

RandomState = tuple[torch.Tensor, list[torch.Tensor]]
"""On the CPU and on every GPU."""


def random_state() -> RandomState:
    """Where they are now."""
    return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []


def set_random_state(state: RandomState) -> None:
    """Go back there."""
    torch.set_rng_state(state[0])
    if state[1]:
        torch.cuda.set_rng_state_all(state[1])
