"""How much longer `import generated; generated.Adam` takes than `import numpy` (target: at most 60 ms).

    python benchmarks/imports.py

Fresh interpreters, in turns. Prints the median and the least of each, and the median of what a round's
``generated.Adam`` took longer than its ``numpy``, which changes least on a busy machine. Bytecode comes from
a cache of the benchmark's own: compiling isn't measured, even where the environment keeps Python from writing
any (PYTHONDONTWRITEBYTECODE). How long an import takes depends on the machine and on what else it does, so
this is a script and not a test; what an import may load is a test (tests/integration/test_imports.py).
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

ROUNDS = 25
STATEMENTS = {
    "nothing": "pass",
    "solvergen": "import solvergen",
    "numpy": "import numpy",
    "generated.Adam": "import generated; generated.Adam",
    "solvergen --help": "from solvergen.cli.app import run; run(['--help'])",
}


def seconds(statement: str, environment: Mapping[str, str]) -> float:
    """Wall time of a fresh interpreter that runs ``statement``."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", statement],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
        env=environment,
    )
    return time.perf_counter() - started


def measured(bytecode: str) -> dict[str, list[float]]:
    """The times of each statement in milliseconds, a number a round."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for statement in STATEMENTS.values():
        seconds(statement, environment)  # writes the bytecode
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            times[name].append(1000 * seconds(statement, environment))
    return times


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as bytecode:
        times = measured(bytecode)
    print(f"{'':20} {'median':>10} {'least':>10}")
    for name, values in times.items():
        print(f"{name:20} {statistics.median(values):7.1f} ms {min(values):7.1f} ms")
    over = [own - numpy for own, numpy in zip(times["generated.Adam"], times["numpy"], strict=True)]
    print(f"\ngenerated.Adam over numpy: {statistics.median(over):.1f} ms (target: 60)")


if __name__ == "__main__":
    main()
