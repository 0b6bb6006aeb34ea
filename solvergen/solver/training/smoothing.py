"""The loss that Caffe displays: a mean over the last ``average_loss`` iterations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


class SmoothedLoss:
    """A running mean until the window is full; then each loss takes the place of the one that is as many
    iterations old. Caffe counts in the type of its blobs and never sums anew, and so is it here: rounding
    accumulates, and a NaN never leaves."""

    def __init__(self, window: int, dtype: Any) -> None:
        self._window = window
        self._type = np.dtype(dtype).type
        self._size = self._type(window)
        self.begin(0)

    @property
    def value(self) -> float:
        """The smoothed loss."""
        return float(self._value)

    def begin(self, iteration: int) -> None:
        """Forget everything: ``step`` begins at this iteration."""
        self._start = iteration
        self._losses: list[Any] = []
        self._value = self._type(0)

    def add(self, loss: float, iteration: int) -> None:
        """The loss of this iteration."""
        with np.errstate(all="ignore"):
            new = self._type(loss)
            size = len(self._losses)
            if size < self._window:
                self._losses.append(new)
                self._value = (self._value * self._type(size) + new) / self._type(size + 1)
                return
            place = (iteration - self._start) % self._window
            self._value += (new - self._losses[place]) / self._size
            self._losses[place] = new

    def state(self) -> dict[str, Any]:
        """Everything, as data that JSON can hold; numbers as the text of their bits."""
        return {
            "start": self._start,
            "value": float(self._value).hex(),
            "losses": [float(x).hex() for x in self._losses],
        }

    def restore(self, state: Mapping[str, Any], iteration: int) -> bool:
        """Go on from there at ``iteration``; False, with nothing changed, if the window is another now."""
        losses = [self._type(float.fromhex(x)) for x in state["losses"]]
        if len(losses) != min(iteration - int(state["start"]), self._window):
            return False
        self._start = int(state["start"])
        self._value = self._type(float.fromhex(state["value"]))
        self._losses = losses
        return True
