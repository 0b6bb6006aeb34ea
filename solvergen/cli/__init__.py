"""The command line: arguments, exit codes and printing. What is done, others do.

``main`` is the entry point; ``app`` holds the table of commands, one module each. Those modules import what
they need when they are called, so that ``solvergen --help`` answers at once.
"""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run ``solvergen`` with this process's arguments; never returns."""
    try:
        from solvergen.cli import signals, streams

        streams.make_usable()
        signals.end_in_order()
        from solvergen.cli.app import run

        code = streams.finish(run())
    except KeyboardInterrupt:  # during the imports: in a command it is known what to do
        raise SystemExit(130) from None
    raise SystemExit(code)
