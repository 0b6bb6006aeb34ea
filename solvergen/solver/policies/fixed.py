"""Caffe's ``fixed``: always base_lr."""

from __future__ import annotations

from dataclasses import dataclass

from solvergen.solver.policies.base import Stateless
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Fixed(Stateless):
    """``base_lr``, under the names ``fixed`` and ``constant``."""

    base: float
    name: str = "fixed"

    @classmethod
    def of(cls, given: Given) -> Fixed:
        """From Caffe's fields."""
        return cls(given.base, given.name)

    def at(self, iteration: int) -> float:
        """The base."""
        return self.base
