"""The command line: arguments and exit codes only."""

from __future__ import annotations


def main() -> None:
    """Run the ``solvergen`` command."""
    from solvergen.cli.app import run

    raise SystemExit(run())
