"""A progress bar on a terminal, with log lines above it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from solvergen.solver.logs.sinks import Sink, Unfailing
from solvergen.solver.training.events import Event, Resumed, Started, Updated

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_EVERY = 0.1  # seconds


class ProgressBar:
    """A listener that shows how far a training has come, its loss and its rate."""

    def __init__(self, bar: Progress, task: TaskID) -> None:
        self.bar = bar
        self._task = task
        self._moved = -_EVERY

    def handle(self, event: Event) -> None:
        """Move on."""
        match event:
            case Started():
                self.bar.update(self._task, total=event.max_iter, completed=event.iter)
            case Resumed():
                self.bar.update(self._task, completed=event.iter)
            case Updated():
                now = time.monotonic()
                if now - self._moved < _EVERY:  # moving it costs more than many an iteration
                    return
                self._moved = now
                self.bar.update(
                    self._task,
                    completed=event.iter,
                    loss=f"loss {event.smoothed:.4g}",
                    rate=f"lr {event.lr:.3g}",
                )
            case _:
                return


@contextmanager
def shown(terminal: TextIO, **options: Any) -> Iterator[tuple[ProgressBar, Sink]]:
    """A bar on a terminal while the block runs: the listener, and what prints a line above the bar.

    Nothing is written, and nothing raised, once the terminal is gone. ``options``: of rich's Console.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[loss]}"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(file=cast("IO[str]", Unfailing(terminal)), **options)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, loss="", rate="")

        def above(line: str) -> None:
            console.print(line, markup=False, highlight=False, emoji=False, soft_wrap=True)

        yield ProgressBar(bar, task), above
