"""Rows of many optimizers, made by several processes at once: workers that are started anew, not forked.

A worker that ends before its task is done has crashed: the row of the backend that it was at has failed, and
the others of the task are run again.
"""

from __future__ import annotations

import contextlib
import selectors
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from solvergen.verify.crash import crashed_row
from solvergen.verify.report import Row
from solvergen.verify.wire import row_from
from solvergen.verify.workers import Task, Worker

PERIOD = 0.1
"""Seconds between two looks at whether somebody wants an end."""

GRACE = 1.0
"""Seconds that workers have to come to the end of an example when they are to stop."""

Tell = Callable[[str, int, int], None]
Add = Callable[[int, Row], None]


def in_processes(
    tasks: Sequence[Task], *, jobs: int, examples: int, seed: int, tell: Tell, add: Add
) -> list[Task]:
    """Have ``jobs`` workers make the rows of all tasks; returns the tasks that must be done in this process.

    ``tell`` is told of every example (optimizer, column, number), and of the last one again several times a
    second. Rows go to ``add`` with their column as they are ready. What either raises ends all workers.
    """
    with _temporary_folder() as (folder, rows):

        def keep(column: int, row: Row) -> None:
            rows.append(row)
            add(column, row)

        crew = _Crew(tasks, folder, {"examples": examples, "seed": seed}, tell, keep)
        try:
            crew.work(jobs)
        finally:
            crew.dismiss()
    return crew.here


class _Crew:
    """The workers, and what is left to do. ``here``: what no worker can do."""

    def __init__(
        self, tasks: Sequence[Task], folder: Path, settings: dict[str, int], tell: Tell, add: Add
    ) -> None:
        self.here: list[Task] = []
        self._waiting = list(reversed(tasks))
        self._folder = folder
        self._settings = settings
        self._tell = tell
        self._add = add
        self._last = (tasks[0].name, tasks[0].backends[0][0], 0)
        self._workers: list[Worker] = []
        self._selector = selectors.DefaultSelector()

    def work(self, jobs: int) -> None:
        """Until nothing is left to do."""
        while self._waiting or self._workers:
            while self._waiting and len(self._workers) < jobs:
                worker = Worker(self._folder)
                self._workers.append(worker)
                self._selector.register(worker.output, selectors.EVENT_READ, worker)
                worker.give(self._waiting.pop(), self._settings)
            ready = self._selector.select(PERIOD)
            self._tell(*self._last)
            for key, _ in ready:
                self._hear(key.data)

    def dismiss(self) -> None:
        """End all workers, whatever they are at."""
        for worker in self._workers:
            worker.signal(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self._workers:
            self._workers.pop().end(deadline - time.monotonic())
        self._selector.close()

    def _hear(self, worker: Worker) -> None:
        said = worker.read()
        if said is None:
            self._crashed(worker)
            return
        for message in said:
            assert worker.task is not None
            if "at" in message:
                position, number = message["at"]
                worker.at = position, number
                self._last = (worker.task.name, worker.task.backends[position][0], number)
                self._tell(*self._last)
            else:
                self._done(worker, worker.task, message)

    def _done(self, worker: Worker, task: Task, message: dict[str, Any]) -> None:
        worker.task = None
        if self._waiting:
            worker.give(self._waiting.pop(), self._settings)
        else:
            self._selector.unregister(worker.output)
            self._workers.remove(worker)
            worker.end(GRACE)
        if "rows" not in message:
            self.here.append(task)
            return
        for (column, _), data in zip(task.backends, message["rows"], strict=True):
            self._add(column, row_from(task.name, task.optimizer, data))

    def _crashed(self, worker: Worker) -> None:
        self._selector.unregister(worker.output)
        self._workers.remove(worker)
        code, task, at = worker.end(GRACE), worker.task, worker.at
        assert task is not None
        lost = task.backends if at is None else task.backends[at[0] : at[0] + 1]
        left = tuple(backend for backend in task.backends if backend not in lost)
        if left:
            self._waiting.append(replace(task, backends=left))
        for column, backend in lost:
            number = 0 if at is None else at[1]
            row = crashed_row(task.name, task.optimizer, backend.name, number, code, **self._settings)
            self._add(column, row)


@contextmanager
def _temporary_folder() -> Iterator[tuple[Path, list[Row]]]:
    """A folder for the workers' temporary files, and a list for the rows that come of their work.

    In the end only what a row names is left in it: the text that a compiler has refused, to be looked at.
    """
    folder = Path(tempfile.mkdtemp(prefix="solvergen-verify-"))
    rows: list[Row] = []
    told = ""
    try:
        yield folder, rows
        told = "\n".join(str(row.disagreement or row.detail) for row in rows)
    finally:
        for entry in list(folder.iterdir()):
            if str(entry) in told:
                continue
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty: something is kept
            folder.rmdir()
