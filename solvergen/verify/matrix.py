"""Several optimizers on several backends, into one report."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from solvergen.errors import BackendUnavailable, ReplayError, VerificationError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.agreement import EXAMPLES
from solvergen.verify.arguments import checked_optimizers
from solvergen.verify.collect import Optimizers
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.machines import NAMES, machine
from solvergen.verify.processes import in_processes
from solvergen.verify.replaying.file import write_replay
from solvergen.verify.report import Report, Row
from solvergen.verify.rows import rows_of
from solvergen.verify.workers import Task


@dataclass(frozen=True)
class Progress:
    """How far a verification is: ``done`` of ``examples`` for this optimizer on this backend.

    ``row``: the result, once there is one. ``position`` of ``total`` counts the report's rows from 1.
    """

    optimizer: str
    backend: str
    done: int
    examples: int
    position: int
    total: int
    row: Row | None = None


def verify_all(
    optimizers: Optimizers | Iterable[type[Optimizer]],
    backends: Sequence[str | Backend] = NAMES,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    progress: Callable[[Progress], None] = lambda progress: None,
    replays: str | os.PathLike[str] | None = None,
    jobs: int = 1,
) -> Report:
    """Hold every optimizer on every backend to the bits of its rule.

    ``optimizers``: classes by name (``shipped``, ``optimizers_in``, ``built_from``), or by themselves.
    Never stops at a failure; a backend that doesn't work here is a row that says why. ``progress``: what it
    raises ends everything at once. ``replays``: the folder for files that hold what fails (``write_replay``).

    ``jobs``: how many processes share the work, optimizer by optimizer. The report is the same, and a
    kernel that crashes its process is a row that failed. A class that another process can't import, or a
    backend that isn't given by its name, is run in this process. With processes ``progress`` is also told
    several times a second what it knows already.

    Raises ``VerificationError`` for a backend that there isn't, for what is no optimizer, and for fewer jobs
    than one.
    """
    optimizers = checked_optimizers("verify_all", optimizers)
    if jobs < 1:
        raise VerificationError(f"jobs={jobs!r:.40}: there must be one at least")
    usable = [_usable(backend) for backend in backends]
    places = [(name, column) for name in optimizers for column in range(len(usable))]
    positions = {place: position for position, place in enumerate(places, start=1)}
    rows: dict[tuple[str, int], Row] = {}

    def tell(name: str, column: int, done: int, row: Row | None = None) -> None:
        position = positions[name, column]
        progress(Progress(name, usable[column][0], done, examples, position, len(places), row))

    def add(column: int, row: Row) -> None:
        if row.disagreement is not None:
            row = replace(row, replay=_kept(row.disagreement, replays))
        rows[row.optimizer, column] = row
        tell(row.optimizer, column, row.examples, row)

    for name, column in places:
        backend_name, backend, reason = usable[column]
        if backend is None:
            add(column, Row(name, backend_name, "not run", detail=reason))
    working = tuple((column, backend) for column, (_, backend, _) in enumerate(usable) if backend is not None)
    tasks = [Task(name, optimizer, working) for name, optimizer in optimizers.items() if working]
    jobs = min(jobs, len(tasks))
    if jobs > 1 and all(isinstance(backend, str) for backend in backends):
        tasks = in_processes(tasks, jobs=jobs, examples=examples, seed=seed, tell=tell, add=add)
    for task in tasks:
        _run_here(task, examples, seed, tell, add)
    return Report(tuple(rows[place] for place in places))


def _run_here(
    task: Task,
    examples: int,
    seed: int,
    tell: Callable[[str, int, int], None],
    add: Callable[[int, Row], None],
) -> None:
    """Make the rows of a task in this process."""
    columns, backends = zip(*task.backends, strict=True)

    def tell_of(position: int, done: int) -> None:
        tell(task.name, columns[position], done)

    rows = rows_of(task.name, task.optimizer, backends, examples=examples, seed=seed, tell=tell_of)
    for column, row in zip(columns, rows, strict=True):
        add(column, row)


def _usable(backend: str | Backend) -> tuple[str, Backend | None, str]:
    """Name, the backend if it works here, and why not."""
    try:
        found = machine(backend)
    except BackendUnavailable as reason:
        assert isinstance(backend, str)
        return backend, None, str(reason)
    return found.name, found, ""


def _kept(finding: Disagreement, folder: str | os.PathLike[str] | None) -> Path | ReplayError:
    """The file into which a finding was written, or what kept it from being written."""
    try:
        return write_replay(finding, folder)
    except ReplayError as problem:
        return problem
