"""The bar on a terminal, and lines above it."""

from __future__ import annotations

import io

from solvergen.solver.logs.progress import shown
from solvergen.solver.training import events


def test_lines_stand_above_the_bar_and_nothing_is_read_into_them() -> None:
    written = io.StringIO()
    with shown(written, force_terminal=True, width=100) as (bar, above):
        bar.handle(events.Started(0, net="n", solver_type="SGD", policy="fixed", backend="cpu", max_iter=8))
        bar.handle(events.Updated(3, loss=1.0, smoothed=0.5, lr=0.25))
        above("I0321 [red] Iteration 3")
        bar.handle(events.Finished(8))
        (task,) = bar.bar.tasks
        assert (task.completed, task.total) == (3, 8)
        assert (task.fields["loss"], task.fields["rate"]) == ("loss 0.5", "lr 0.25")
    assert "I0321 [red] Iteration 3\n" in written.getvalue()


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    class Gone(io.StringIO):
        gone = False

        def write(self, text: str) -> int:
            if self.gone:
                raise OSError(5, "Input/output error")
            return super().write(text)

    terminal = Gone()
    with shown(terminal, force_terminal=True, width=100) as (bar, above):
        terminal.gone = True
        above("a line")
        bar.handle(events.Updated(3, loss=1.0, smoothed=0.5, lr=0.25))
