"""What the exit codes say. README and ``solvergen --help`` list them; scripts rely on them."""

from __future__ import annotations

OK = 0
FINDINGS = 1  # the command worked, and what it looked at is not in order; or a file was in the way
USAGE = 2  # the command line itself is wrong (typer's own code for that)
BUG = 3  # solvergen is wrong
# 128 + n: ended by signal n; 130 is Ctrl-C (typer's own code for that, too)
