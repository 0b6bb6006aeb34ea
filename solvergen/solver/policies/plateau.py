"""``plateau``: lower the rate when what is measured no longer gets better."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from solvergen.solver.policies.base import PolicyState
from solvergen.solver.policies.settings import Given


@dataclass(frozen=True)
class Plateau:
    """``base`` times ``factor`` for every plateau so far, and no less than ``least``.

    A plateau is more than ``patience`` measurements one after the other of ``metric`` that aren't better than
    the best so far; after it ``cooldown`` ones don't count. Better is: by more than ``threshold``, a share of
    the best if ``relative``. Measurements without the metric are passed over; one that is NaN isn't better.
    """

    base: float
    factor: float
    patience: int
    cooldown: int
    threshold: float
    relative: bool
    least: float
    metric: str
    best: Literal["min", "max"]
    name: str = "plateau"

    @classmethod
    def of(cls, given: Given) -> Plateau:
        """Settings: ``metric`` (``"loss"``), ``best`` (``"min"``, or ``"max"``), ``factor`` (0.1),
        ``patience`` (10), ``cooldown`` (0), ``threshold`` (0.0001), ``relative`` (true), ``least_rate`` (0).
        """
        best = given.word("best", "min", ("min", "max"))
        return cls(
            base=given.base,
            factor=given.number("factor", 0.1, above=0.0, most=1.0),
            patience=given.count("patience", 10),
            cooldown=given.count("cooldown", 0),
            threshold=given.number("threshold", 1e-4, least=0.0),
            relative=given.flag("relative", True),
            least=given.number("least_rate", 0.0, least=0.0),
            metric=given.word("metric", "loss"),
            best="min" if best == "min" else "max",
        )

    def initial(self) -> PolicyState:
        """No plateau yet, and nothing measured: ``best`` is missing."""
        return {"plateaus": 0, "worse": 0, "cooling": 0}

    def rate(self, iteration: int, state: PolicyState) -> tuple[float, PolicyState]:
        """The rate after the plateaus so far; the state stays as it is."""
        rate = self.base
        for _ in range(int(state.get("plateaus", 0))):
            rate = max(rate * self.factor, self.least)
        return rate, state

    def observed(self, iteration: int, metrics: Mapping[str, float], state: PolicyState) -> PolicyState:
        """One more measurement."""
        if self.metric not in metrics:
            return state
        value = float(metrics[self.metric])
        new = dict(state)
        if self._is_better(value, state):
            new["best"], new["worse"] = value, 0
        else:
            new["worse"] = state["worse"] + 1
        if new["cooling"] > 0:
            new["cooling"] -= 1
            new["worse"] = 0
        if new["worse"] > self.patience:
            new.update(plateaus=new["plateaus"] + 1, worse=0, cooling=self.cooldown)
        return new

    def _is_better(self, value: float, state: PolicyState) -> bool:
        if "best" not in state:
            return value == value
        best = state["best"]
        margin = abs(best) * self.threshold if self.relative else self.threshold
        if math.isinf(best):
            margin = 0.0  # infinity less a share of itself isn't a number
        return value < best - margin if self.best == "min" else value > best + margin

    def notice(self, iteration: int) -> str | None:
        """Nothing."""
        return None
