"""``python -m solvergen``: the command line, where its script is not on the path."""

from __future__ import annotations

from solvergen.cli import main

main()
