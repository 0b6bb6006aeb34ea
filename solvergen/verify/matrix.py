"""Several optimizers on several backends, into one report."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from solvergen.errors import BackendUnavailable, ReplayError, SolvergenError
from solvergen.runtime.backends.base import Backend
from solvergen.runtime.optimizer import Optimizer
from solvergen.verify.agreement import EXAMPLES, find_disagreement
from solvergen.verify.collect import Optimizers
from solvergen.verify.disagreement import Disagreement
from solvergen.verify.machines import NAMES, machine
from solvergen.verify.replay_file import write_replay
from solvergen.verify.report import Report, Row


@dataclass(frozen=True)
class Progress:
    """How far a verification is: ``done`` of ``examples`` for this optimizer on this backend.

    ``row``: the result, once there is one. ``position`` of ``total`` counts rows from 1.
    """

    optimizer: str
    backend: str
    done: int
    examples: int
    position: int
    total: int
    row: Row | None = None


def verify_all(
    optimizers: Optimizers,
    backends: Sequence[str | Backend] = NAMES,
    *,
    examples: int = EXAMPLES,
    seed: int = 0,
    progress: Callable[[Progress], None] = lambda progress: None,
    replays: str | os.PathLike[str] | None = None,
) -> Report:
    """Hold every optimizer on every backend to the bits of its rule.

    ``optimizers``: classes by name (``shipped``, ``optimizers_in``, ``built_from``). Never stops at a
    failure; a backend that doesn't work here is a row that says why. ``replays``: the folder for files
    that hold what fails (``write_replay``). Raises ``VerificationError`` for a backend that there isn't.
    """
    usable = [_usable(backend) for backend in backends]
    total = len(optimizers) * len(usable)
    rows: list[Row] = []
    for name, optimizer in optimizers.items():
        for backend_name, backend, reason in usable:
            position = len(rows) + 1

            def tell(
                done: int,
                row: Row | None = None,
                at: tuple[str, str, int] = (name, backend_name, position),
            ) -> None:
                progress(Progress(at[0], at[1], done, examples, at[2], total, row))

            tell(0)
            if backend is None:
                row = Row(name, backend_name, "not run", detail=reason)
            else:
                row = _row(name, optimizer, backend, examples, seed, tell)
                if row.disagreement is not None:
                    row = replace(row, replay=_kept(row.disagreement, replays))
            rows.append(row)
            tell(row.examples, row)
    return Report(tuple(rows))


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


def _row(
    name: str,
    optimizer: type[Optimizer],
    backend: Backend,
    examples: int,
    seed: int,
    tell: Callable[[int], None],
) -> Row:
    started = time.perf_counter()
    done = 0

    def count(number: int) -> None:
        nonlocal done
        done = number
        tell(number)

    try:
        found = find_disagreement(optimizer, backend, examples=examples, seed=seed, on_example=count)
    except SolvergenError as error:
        return Row(name, backend.name, "failed", done, time.perf_counter() - started, str(error))
    seconds = time.perf_counter() - started
    if found is None:
        return Row(name, backend.name, "passed", done, seconds)
    return Row(name, backend.name, "failed", done, seconds, found.headline, found)
