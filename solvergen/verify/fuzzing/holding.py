"""Holds what a run of the reference has computed to what its equations mean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from solvergen.runtime.definition import Definition
from solvergen.verify.direct import hyperparameters_of, options_of
from solvergen.verify.example import Example
from solvergen.verify.fuzzing.meaning import Update
from solvergen.verify.fuzzing.rule import Rule
from solvergen.verify.fuzzing.spans import Span, contains
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
        where = f"step {self.step}, {self.tensor}, {self.buffer}"
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
    for number, (before, after) in enumerate(pairwise(trace), start=1):
        if after.outcome != "applied":
            continue
        step = example.steps[number - 1]
        for tensor, gradient in zip(example.tensors, step.gradients, strict=True):
            if gradient is None:
                continue
            update = Update(
                rule,
                tensor.param.dtype.name,
                hyperparameters_of(definition, example, step, tensor),
                options_of(definition, example, tensor),
                after.counts[tensor.name],
            )
            found = _departure(update, number, tensor.name, before, after, gradient, tally)
            if found is not None:
                return found
    return None


def _departure(
    update: Update,
    step: int,
    tensor: str,
    before: Moment,
    after: Moment,
    gradient: np.ndarray,
    tally: Tally,
) -> Departure | None:
    arrays = {n: _floats(a) for n, a in before.buffers[tensor].items()}
    results = {n: _floats(a) for n, a in after.buffers[tensor].items()}
    for index, grad in enumerate(_floats(gradient)):
        start = {n: values[index] for n, values in arrays.items()}
        expected = update.run({**before.scalars[tensor], **start, "grad": grad})
        for buffer, value in expected.items():
            element = index if buffer in results else None
            found = results[buffer][index] if buffer in results else after.scalars[tensor][buffer]
            if value is None:
                tally.open += 1
            elif not contains(value, found):
                return Departure(step, tensor, buffer, element, value, found)
            elif value.is_exact:
                tally.exact += 1
            else:
                tally.bounded += 1
    return None


def _floats(array: np.ndarray) -> list[float]:
    with np.errstate(all="ignore"):
        return [float(x) for x in np.asarray(array).reshape(-1).astype(np.float64)]
