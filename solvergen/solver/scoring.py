"""Scoring and timing a net, apart from any training."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from solvergen.solver.net.protocol import Output, Repeatable, Watchable, loss_of
from solvergen.solver.training.debugging import noted
from solvergen.solver.training.events import OutputValue
from solvergen.solver.training.testing import check_same, checked_outputs

if TYPE_CHECKING:
    from solvergen.solver.net.protocol import Net
    from solvergen.solver.training.solver import Solver


@dataclass(frozen=True)
class Score:
    """Means over batches: of the loss, and of every number of every output."""

    loss: float
    outputs: tuple[OutputValue, ...]

    def as_json(self) -> dict[str, Any]:
        """As JSON has it; what isn't finite is a string."""
        return {
            "loss": _finite(self.loss),
            "outputs": [
                {"name": each.name, "value": _finite(each.value), "loss_weight": each.loss_weight}
                for each in self.outputs
            ],
        }


def score(net: Net, iterations: int, tell: Callable[[int, str, float], None]) -> Score:
    """Run ``net`` over ``iterations`` batches; ``tell`` hears of each batch's outputs.

    Raises NetError for outputs that aren't the same ones for each batch.
    """
    loss = 0.0
    names: list[tuple[str, float]] = []
    sums = np.zeros(0)
    first: tuple[Output, ...] = ()
    for batch in range(iterations):
        outputs = checked_outputs(net, net.forward())
        loss += loss_of(outputs)
        numbers = [
            (output.name, output.loss_weight, float(value))
            for output in outputs
            for value in output.values.reshape(-1)
        ]
        if batch:
            check_same(net, first, outputs)
        else:
            first = outputs
            names = [(name, weight) for name, weight, _ in numbers]
            sums = np.zeros(len(numbers))
        sums += [value for _, _, value in numbers]
        for name, _, value in numbers:
            tell(batch, name, value)
    means = tuple(
        OutputValue(index, name, float(total) / iterations, weight)
        for index, ((name, weight), total) in enumerate(zip(names, sums, strict=True))
    )
    return Score(loss / iterations, means)


@dataclass(frozen=True)
class LayerTimes:
    """Average seconds of a layer's parts of an iteration."""

    layer: str
    forward: float
    backward: float

    def as_json(self) -> dict[str, Any]:
        """Milliseconds."""
        return {
            "layer": self.layer,
            "forward_ms": 1e3 * self.forward,
            "backward_ms": 1e3 * self.backward,
        }


@dataclass(frozen=True)
class Times:
    """Average seconds of an iteration's parts; ``total``: of all iterations.

    ``layers``: of each layer, in the order in which they go forward, if the net can tell.
    """

    forward: float
    backward: float
    update: float
    total: float
    layers: tuple[LayerTimes, ...] = ()

    def averages(self) -> Iterator[tuple[str, float]]:
        """The parts under the names that Caffe's log has."""
        yield "Forward pass", self.forward
        yield "Backward pass", self.backward
        yield "Forward-Backward", self.forward + self.backward
        yield "Update", self.update

    def as_json(self) -> dict[str, Any]:
        """Milliseconds."""
        return {
            "forward_ms": 1e3 * self.forward,
            "backward_ms": 1e3 * self.backward,
            "update_ms": 1e3 * self.update,
            "total_ms": 1e3 * self.total,
            "layers": [layer.as_json() for layer in self.layers],
        }


def measure(solver: Solver, iterations: int, tell: Callable[[int, float], None] | None = None) -> Times:
    """Time passes and updates of a solver's net, after one of each that is not counted; ``tell`` hears of
    each iteration's seconds of forward and backward.

    A net has no backward pass of its own: what forward and backward take together, less the forward pass.
    Layers are timed in passes of their own, since looking at the clock takes time, too.
    """
    forward = both = update = 0.0
    clock = time.perf_counter
    layers = _Layers(solver.net)
    for round_ in range(iterations + 1):
        if round_ == 1:
            forward = both = update = 0.0
        solver.net.clear_diffs()
        if isinstance(solver.net, Repeatable):
            solver.net.keep_batches()
        started = clock()
        solver.net.forward()
        after_forward = clock()
        solver.net.forward_backward()
        after_both = clock()
        solver.apply_update()
        update += clock() - after_both
        both += after_both - after_forward
        forward += after_forward - started
        layers.time(counted=round_ > 0)
        if round_ and tell is not None:
            tell(round_, after_both - after_forward)
    return Times(
        forward=forward / iterations,
        backward=max(both - forward, 0.0) / iterations,
        update=update / iterations,
        total=forward + both + update,
        layers=layers.averages(iterations),
    )


class _Layers:
    """The sums of each layer's times, if the net can tell them."""

    def __init__(self, net: Net) -> None:
        self._net = net
        self._sums: dict[str, tuple[float, float]] = {}

    def time(self, *, counted: bool) -> None:
        """Make a pass that is watched."""
        net = self._net
        if not isinstance(net, Watchable):
            return
        net.watch("seconds")
        net.forward_backward()
        for one in noted(net) if counted else ():
            forward, backward = self._sums.get(one.layer, (0.0, 0.0))
            self._sums[one.layer] = (forward + one.forward, backward + one.backward)
        net.watch(None)

    def averages(self, iterations: int) -> tuple[LayerTimes, ...]:
        """Of so many passes."""
        return tuple(
            LayerTimes(layer, forward / iterations, backward / iterations)
            for layer, (forward, backward) in self._sums.items()
        )


def _finite(value: float) -> float | str:
    return value if np.isfinite(value) else str(value)
