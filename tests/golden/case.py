"""One golden run: what a package is told, under the names that the specs use, and what it gave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

Run = tuple[np.ndarray, dict[str, np.ndarray]]
"""Parameters at the recorded steps, ``[len(RECORDED), SIZE]``; and states at the end by the names that the
spec gives them: ``[SIZE]``, one number a tensor for a scalar state, or ``[1]`` for a shared one."""

CHANGES: Mapping[int, Mapping[str, float]] = MappingProxyType(
    {
        11: {"lr": 0.1},
        17: {"weight_decay": 2.0},
        23: {"momentum": 0.9, "beta1": 0.9},
    }
)
"""Unless a case says otherwise: the rate drops tenfold at step 11, the decay doubles at 17, the momentum
(or beta1) falls at 23. What is zero stays zero, and what a rule hasn't doesn't matter."""


@dataclass(frozen=True)
class Case:
    """One run: an optimizer with its settings, under the names that the specs use.

    ``by`` is the package that makes the trajectory, where a rule has several. ``changes`` are factors
    of hyperparameters, by the step from which on they apply. ``options`` may leave out those that are
    derived from hyperparameters. ``dense``: no gradient is missing at any step, for packages that can't
    leave a tensor out of a step over all of them. ``blocks``: into how many tensors fall, where the rule
    knows blocks and it isn't one.
    """

    id: str
    hyperparameters: Mapping[str, float]
    options: Mapping[str, bool] = field(default_factory=dict)
    by: str = ""
    changes: Mapping[int, Mapping[str, float]] = field(default_factory=lambda: CHANGES)
    dense: bool = False
    blocks: Mapping[str, int] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """What the constructor is given besides parameters and backend."""
        return {**self.at(1), **self.options, **({"blocks": self.blocks} if self.blocks else {})}

    def at(self, step: int) -> dict[str, float]:
        """Hyperparameters in force at ``step`` (from 1)."""
        values = dict(self.hyperparameters)
        for first, factors in self.changes.items():
            for name, factor in factors.items():
                if step >= first and name in values:
                    values[name] *= factor
        return values


def switched(*names: str) -> Iterator[tuple[str, dict[str, bool]]]:
    """Every setting of the options ``names``, each with an ending for a case's id: ``_amsgrad_maximize``."""
    for bits in range(2 ** len(names)):
        setting = {name: bool(bits >> i & 1) for i, name in enumerate(names)}
        yield "".join(f"_{name}" for name, on in setting.items() if on), setting
