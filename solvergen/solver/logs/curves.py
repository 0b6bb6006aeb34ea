"""What a log says, as curves over the iterations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Curve:
    """Values over iterations, which increase."""

    iterations: tuple[int, ...]
    values: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.iterations)


@dataclass(frozen=True)
class NetCurves:
    """The outputs of a net by their names; ``losses`` names those that have a loss weight."""

    outputs: Mapping[str, Curve]
    losses: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TrainingLog:
    """A log that was read: see ``reading.read_log``.

    ``loss`` is the smoothed one that is displayed; ``tests`` has a net for every number that occurs.
    """

    path: Path
    loss: Curve
    rate: Curve
    train: NetCurves
    tests: Mapping[int, NetCurves]
    warnings: tuple[str, ...] = ()

    @property
    def last_iteration(self) -> int:
        """The largest iteration that occurs."""
        nets = (self.train, *self.tests.values())
        curves = (self.loss, self.rate, *(curve for net in nets for curve in net.outputs.values()))
        return max((curve.iterations[-1] for curve in curves if len(curve)), default=0)


@dataclass(frozen=True)
class NetOutput:
    """One number that a net put out."""

    name: str
    value: float
    is_loss: bool = False


@dataclass
class _Points:
    """A curve in the making. Where a run was resumed earlier than it had come, what it did anew counts."""

    iterations: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def add(self, iteration: int, value: float) -> None:
        while self.iterations and self.iterations[-1] >= iteration:
            self.iterations.pop()
            self.values.pop()
        self.iterations.append(iteration)
        self.values.append(value)

    def done(self) -> Curve:
        return Curve(tuple(self.iterations), tuple(self.values))


@dataclass
class _NetPoints:
    outputs: dict[str, _Points] = field(default_factory=dict)
    losses: set[str] = field(default_factory=set)

    def add(self, iteration: int, outputs: Sequence[NetOutput]) -> None:
        counts = Counter(output.name for output in outputs)
        seen: Counter[str] = Counter()
        for output in outputs:
            name = output.name
            if counts[name] > 1:  # an output of several elements: each is printed under the same name
                name = f"{output.name}[{seen[output.name]}]"
                seen[output.name] += 1
            self.outputs.setdefault(name, _Points()).add(iteration, output.value)
            if output.is_loss:
                self.losses.add(name)

    def done(self) -> NetCurves:
        return NetCurves(
            {name: points.done() for name, points in self.outputs.items()}, frozenset(self.losses)
        )


class Gatherer:
    """Takes what readers find, in the order of the file."""

    def __init__(self) -> None:
        self._loss = _Points()
        self._rate = _Points()
        self._train = _NetPoints()
        self._tests: dict[int, _NetPoints] = {}
        self.warnings: list[str] = []

    def loss(self, iteration: int, value: float) -> None:
        """The loss that was displayed."""
        self._loss.add(iteration, value)

    def rate(self, iteration: int, value: float) -> None:
        """The learning rate."""
        self._rate.add(iteration, value)

    def train(self, iteration: int, outputs: Sequence[NetOutput]) -> None:
        """All outputs of the train net at an iteration."""
        self._train.add(iteration, outputs)

    def test(self, iteration: int, net: int, outputs: Sequence[NetOutput]) -> None:
        """All mean outputs of a test net at an iteration."""
        self._tests.setdefault(net, _NetPoints()).add(iteration, outputs)

    def done(self, path: Path) -> TrainingLog:
        """What was gathered."""
        return TrainingLog(
            path=path,
            loss=self._loss.done(),
            rate=self._rate.done(),
            train=self._train.done(),
            tests={net: points.done() for net, points in sorted(self._tests.items())},
            warnings=tuple(self.warnings),
        )
