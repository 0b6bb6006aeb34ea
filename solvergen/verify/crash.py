"""The row of an optimizer whose worker has crashed: on which example, and how to see it again."""

from __future__ import annotations

import signal

from solvergen.errors import SolvergenError
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.drawing import each_example
from solvergen.verify.example import Example
from solvergen.verify.report import Row
from solvergen.verify.settings import space_of


def crashed_row(
    name: str,
    optimizer: type[Optimizer],
    backend: str,
    number: int,
    code: int,
    *,
    examples: int,
    seed: int,
) -> Row:
    """The row of ``optimizer`` on ``backend`` after a process ended with ``code`` at its example ``number``.

    The example is drawn again, not run: running it would end this process too. ``number`` 0: before the
    first one.
    """
    how = _how(code)
    if number == 0:
        return Row(name, backend, "failed", detail=f"{how} before it could run the first example")
    error = f"Crash: {how}"
    try:
        example = _drawn(optimizer, number, examples, seed)
    except SolvergenError:
        example = None
    if example is None:
        return Row(name, backend, "failed", number, detail=f"{error} at example {number} of seed {seed}")
    found = Disagreement(optimizer.definition, optimizer.__module__, backend, example, error=error)
    return Row(name, backend, "failed", number, detail=found.headline, disagreement=found)


def _drawn(optimizer: type[Optimizer], number: int, examples: int, seed: int) -> Example | None:
    """The example of this number, counted from 1."""
    drawn: list[Example] = []

    def take(example: Example) -> bool:
        drawn.append(example)
        return len(drawn) == number

    each_example(space_of(optimizer.definition), take, examples=examples, seed=seed)
    return drawn[number - 1] if len(drawn) >= number else None


def _how(code: int) -> str:
    """What ended a process."""
    if code >= 0:
        return f"the process ended with exit code {code}"
    try:
        return f"the process was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was ended by signal {-code}"
