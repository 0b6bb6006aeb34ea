"""Notes on what each layer does in a pass, taken layer by layer as the pass goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from solvergen.solver.net.protocol import LayerPass, Watching


class Notes:
    """Magnitudes or seconds of a net whose layers go one after the other: a layer's time is that since the
    last note."""

    def __init__(self, what: Watching) -> None:
        self._what = what
        self._passes: dict[str, LayerPass] = {}
        self._mark = 0.0

    @property
    def passes(self) -> tuple[LayerPass, ...]:
        """Of the last pass, in the order in which layers went forward."""
        return tuple(self._passes.values())

    def begin(self) -> None:
        """A pass begins."""
        self._passes = {}
        self._mark = time.perf_counter()

    def forward(self, layer: str, tops: Mapping[str, Any]) -> None:
        """This layer has just made these arrays."""
        if self._what == "seconds":
            seconds = time.perf_counter() - self._mark
            self._passes[layer] = LayerPass(layer, forward=seconds)
            self._mark = time.perf_counter()
        else:
            self._passes[layer] = LayerPass(layer, tops=_magnitudes(tops))

    def backward(self, layer: str, bottoms: Mapping[str, Any]) -> None:
        """This layer has just made the gradients of what it was given."""
        if self._what == "seconds":
            seconds = time.perf_counter() - self._mark
            self._passes[layer] = replace(self._passes[layer], backward=seconds)
            self._mark = time.perf_counter()
        else:
            self._passes[layer] = replace(self._passes[layer], bottoms=_magnitudes(bottoms))


def _magnitudes(arrays: Mapping[str, Any]) -> dict[str, float]:
    return {name: mean_magnitude(array) for name, array in arrays.items()}


def mean_magnitude(array: Any) -> float:
    """The mean of the magnitudes of an array on the host, in float64; 0 of an empty one."""
    values = np.asarray(array)
    return float(np.abs(values.astype(np.float64)).mean()) if values.size else 0.0
