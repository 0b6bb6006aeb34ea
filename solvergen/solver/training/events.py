"""What happens in a training run, as data for whoever listens: logs, progress bars, tests.

The Solver announces each event to every listener in the order in which it happens. A listener is any
object with ``handle(event)``; it looks at the class of an event and ignores those that it doesn't know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol


class Action(Enum):
    """What an action function asks of the Solver."""

    NONE = "none"
    STOP = "stop"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True)
class OutputValue:
    """One number of an output, and what it adds to the loss (``loss_weight`` 0: nothing)."""

    index: int
    """Among all numbers of all outputs of its net, from 0: what Caffe prints after ``#``."""
    name: str
    value: float
    loss_weight: float

    @property
    def loss(self) -> float:
        """The value times its loss weight."""
        return self.value * self.loss_weight


@dataclass(frozen=True)
class Event:
    """Something that happened. ``iter`` counts the updates done by then, as Caffe prints it."""

    iter: int


@dataclass(frozen=True)
class Started(Event):
    """``solve`` begins (Caffe: Solving NAME, Learning Rate Policy: POLICY)."""

    net: str
    solver_type: str
    policy: str
    backend: str
    max_iter: int


@dataclass(frozen=True)
class Resumed(Event):
    """History (and, if the state names one, the model) was read from ``path``."""

    path: str
    solver_type: str


@dataclass(frozen=True)
class Iteration(Event):
    """A display: the loss of this iteration before its update, and the rate that the update will use.

    ``seconds`` are those since the last display, or since ``step`` began, and ``iterations`` were done in
    them. ``final`` marks the display after training, which comes after a forward pass alone.
    """

    loss: float
    smoothed: float
    lr: float
    seconds: float = 0.0
    iterations: int = 0
    final: bool = False


@dataclass(frozen=True)
class Outputs(Event):
    """The outputs of the train net at a display, one entry a number."""

    values: tuple[OutputValue, ...]


@dataclass(frozen=True)
class RateUsed(Event):
    """The rate of the update that comes next. With ``displayed`` Caffe prints it: ``Iteration N, lr = X``."""

    lr: float
    displayed: bool


@dataclass(frozen=True)
class Clipped(Event):
    """The gradients' norm was above the threshold and they were multiplied by ``scale``."""

    norm: float
    threshold: float
    scale: float


@dataclass(frozen=True)
class Updated(Event):
    """An iteration is done: ``iter`` counts it. For progress; Caffe prints nothing."""

    loss: float
    smoothed: float
    lr: float


@dataclass(frozen=True)
class TestStarted(Event):
    """Test net number ``net`` begins (Caffe: Iteration N, Testing net (#net))."""

    __test__ = False  # no test class, whatever pytest thinks

    net: int


@dataclass(frozen=True)
class TestInterrupted(Event):
    """A test was broken off by a request to stop."""

    __test__ = False

    net: int


@dataclass(frozen=True)
class TestOutputs(Event):
    """Means over the iterations of test net ``net``; ``loss`` only with test_compute_loss."""

    __test__ = False

    net: int
    values: tuple[OutputValue, ...]
    loss: float | None


@dataclass(frozen=True)
class Snapshotting(Event):
    """A file of a snapshot is to be written. ``kind``: "model" or "state"; ``format`` as snapshot_format."""

    path: str
    kind: str
    format: str


@dataclass(frozen=True)
class Finished(Event):
    """``solve`` is done (Caffe: Optimization Done)."""


@dataclass(frozen=True)
class EarlyStop(Event):
    """``solve`` ends because of a request to stop (Caffe: Optimization stopped early)."""


@dataclass(frozen=True)
class Warned(Event):
    """Something that Caffe would do silently, or that solvergen does otherwise."""

    text: str


@dataclass(frozen=True)
class DebugInfo(Event):
    """With debug_info: mean magnitudes of one parameter.

    ``phase``: "forward" (of the data), "backward" (of the diff) or "update" (both, before the update).
    """

    phase: str
    layer: str
    name: str
    index: int
    data: float
    diff: float


@dataclass(frozen=True)
class DebugBlob(Event):
    """With debug_info: the mean magnitude of what a layer put out, or of a gradient that it passed down.

    ``phase``: "forward" (of a top blob's data) or "backward" (of a bottom blob's diff).
    """

    phase: str
    layer: str
    blob: str
    value: float


@dataclass(frozen=True)
class DebugNorms(Event):
    """With debug_info: sums of magnitudes and norms over all parameters after a backward pass."""

    data_l1: float
    diff_l1: float
    data_l2: float
    diff_l2: float


class Listener(Protocol):
    """Whoever wants to know."""

    def handle(self, event: Event) -> None:
        """Take note of an event. Mustn't change the Solver; what it raises ends the training."""
        ...


class Collected:
    """A listener that keeps every event."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def handle(self, event: Event) -> None:
        """Keep it."""
        self.events.append(event)


def announce(listeners: Sequence[Listener | Callable[[Event], None]], event: Event) -> None:
    """Tell everyone. A plain function is a listener too."""
    for listener in listeners:
        handle: Any = getattr(listener, "handle", listener)
        handle(event)
