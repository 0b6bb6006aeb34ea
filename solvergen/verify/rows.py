"""The rows of one optimizer: all its backends in one search."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from solvergen.errors import SolvergenError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.agreement import Searched, search
from solvergen.verify.report import Row

Tell = Callable[[int, int], None]
"""Is told, before each run, the position of its backend and how many examples that will have run."""


def rows_of(
    name: str,
    optimizer: type[Optimizer],
    backends: Sequence[Backend],
    *,
    examples: int,
    seed: int,
    tell: Tell,
) -> tuple[Row, ...]:
    """A row for each backend. What ``tell`` raises ends the search, unless it is a SolvergenError."""
    met = [Searched(backend, position) for position, backend in enumerate(backends)]

    def note(at: Searched) -> None:
        met[at.position] = at
        tell(at.position, at.examples)

    try:
        searched = search(optimizer, backends, examples=examples, seed=seed, on_example=note)
    except SolvergenError as error:  # of the optimizer, not of a backend
        return tuple(Row(name, at.backend.name, "failed", at.examples, at.seconds, str(error)) for at in met)
    return tuple(_row(name, at) for at in searched)


def _row(name: str, at: Searched) -> Row:
    found = at.disagreement
    if found is None:
        return Row(name, at.backend.name, "passed", at.examples, at.seconds)
    return Row(name, at.backend.name, "failed", at.examples, at.seconds, found.headline, found)
