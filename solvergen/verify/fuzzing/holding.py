"""Holds what a run of the reference has computed to what its equations mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from solvergen.runtime.definition import Definition
from solvergen.verify.direct import hyperparameters_of, options_of, positions_of
from solvergen.verify.example import Example
from solvergen.verify.fuzzing.rule import Rule
from solvergen.verify.fuzzing.spans import Span, Value, contains, exactly
from solvergen.verify.fuzzing.together import Outcome, TakingPart, step_together
from solvergen.verify.lines import matrices_of
from solvergen.verify.trace import Moment, Trace


@dataclass(frozen=True)
class Departure:
    """A value that isn't what the equations mean: ``found`` doesn't lie in ``expected``."""

    step: int
    tensor: str
    buffer: str
    element: int | None
    expected: Span
    found: float

    def __str__(self) -> str:
        where = f"step {self.step}, {self.tensor or 'shared'}, {self.buffer}"
        where += "" if self.element is None else f"[{self.element}]"
        ends = f"{self.expected.low.hex()} to {self.expected.high.hex()}"
        return f"{where}: {self.found.hex()} isn't in {ends} ({self.found!r} and {self.expected.low!r})"


@dataclass
class Tally:
    """How many values were held to the bit, within bounds, or not at all since the bounds left them open."""

    exact: int = 0
    bounded: int = 0
    open: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.exact + self.bounded + self.open

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.exact + other.exact, self.bounded + other.bounded, self.open + other.open)


def first_departure(
    rule: Rule, definition: Definition, example: Example, trace: Trace, tally: Tally
) -> Departure | None:
    """Where ``trace``, the run of ``example``, first leaves what ``rule`` means; None if it doesn't.

    Each step begins with what the one before it has left, so that bounds don't grow from step to step.
    """
    positions = positions_of(example.tensors)
    for number, (before, after) in enumerate(pairwise(trace), start=1):
        if after.outcome != "applied":
            continue
        taking_part = [_taking_part(definition, example, number, i, before, after) for i in positions]
        outcomes = step_together(rule, taking_part, before.shared)
        for expected, found in _values(example, positions, outcomes, before, after):
            departure = _held(number, expected, found, tally)
            if departure is not None:
                return departure
    return None


def _taking_part(
    definition: Definition, example: Example, number: int, index: int, before: Moment, after: Moment
) -> TakingPart | None:
    """One tensor as a step finds it; None if it has no gradient."""
    step, tensor = example.steps[number - 1], example.tensors[index]
    gradient = step.gradients[index]
    if gradient is None:
        return None
    arrays = {n: _floats(a) for n, a in before.buffers[tensor.name].items()} | {"grad": _floats(gradient)}
    of_lines = {name for names in definition.line_states.values() for name in names}
    lines = {name: arrays.pop(name) for name in list(arrays) if name in of_lines}
    return TakingPart(
        tensor.param.dtype.name,
        hyperparameters_of(definition, example, step, tensor),
        options_of(definition, example, tensor),
        after.counts[tensor.name],
        [{n: values[i] for n, values in arrays.items()} for i in range(gradient.size)],
        before.scalars[tensor.name],
        matrices_of(definition.view, tensor.shape, tensor.blocks)
        if definition.view
        else (1, 1, gradient.size),
        lines,
        len(tensor.shape),
        gradient.dtype.name,
    )


@dataclass(frozen=True)
class _Place:
    tensor: str
    buffer: str
    element: int | None
    value: Value


def _values(
    example: Example,
    positions: Sequence[int],
    outcomes: Sequence[Outcome | None],
    before: Moment,
    after: Moment,
) -> Iterator[tuple[_Place, float]]:
    """Each value that a step leaves: what it should be and what it is."""
    shared: dict[str, Value] | None = None
    for index, outcome in zip(positions, outcomes, strict=True):
        if outcome is None:
            continue
        tensor = example.tensors[index].name
        if shared is None:  # this one speaks for all
            shared = outcome.scalars
        for name, value in outcome.scalars.items():
            if name in after.scalars[tensor]:
                yield _Place(tensor, name, None, value), after.scalars[tensor][name]
        for name, array in after.buffers[tensor].items():
            of_lines = outcome.lines.get(name)
            for element, found in enumerate(_floats(array)):
                if of_lines is not None:
                    yield _Place(tensor, name, element, of_lines[element]), found
                    continue
                yield _Place(tensor, name, element, outcome.elements[element][name]), found
    for name, found in after.shared.items():
        value = exactly(before.shared[name]) if shared is None else shared[name]
        yield _Place("", name, None, value), found


def _held(step: int, expected: _Place, found: float, tally: Tally) -> Departure | None:
    value = expected.value
    if value is None:
        tally.open += 1
    elif not contains(value, found):
        return Departure(step, expected.tensor, expected.buffer, expected.element, value, found)
    elif value.is_exact:
        tally.exact += 1
    else:
        tally.bounded += 1
    return None


def _floats(array: np.ndarray) -> list[float]:
    with np.errstate(all="ignore"):
        return [float(x) for x in np.asarray(array).reshape(-1).astype(np.float64)]
