"""How large examples may be, by backend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds of an example: tensors, steps, and elements of all tensors together."""

    tensors: int = 6
    steps: int = 4
    elements: int = 70_000
