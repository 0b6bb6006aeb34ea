"""How much longer `import generated; generated.Adam` takes than `import numpy` (target: at most 60 ms).

    python benchmarks/imports.py

Fresh interpreters, in turns; prints the medians. How long an import takes depends on the machine and on what
else it does, so this is a script and not a test; what an import may load is a test
(tests/integration/test_imports.py).
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROUNDS = 25
STATEMENTS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "generated.Adam": "import generated; generated.Adam",
    "solvergen --help": "from solvergen.cli.app import run; run(['--help'])",
}


def seconds(statement: str) -> float:
    """Wall time of a fresh interpreter that runs ``statement``."""
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", statement],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=Path(__file__).parents[1],
    )
    return time.perf_counter() - started


def main() -> None:
    """Measure and print."""
    times: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for statement in STATEMENTS.values():
        seconds(statement)  # bytecode caches
    for _ in range(ROUNDS):
        for name, statement in STATEMENTS.items():
            times[name].append(seconds(statement))
    medians = {name: 1000 * statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:20} {value:7.1f} ms")
    print(f"\ngenerated.Adam over numpy: {medians['generated.Adam'] - medians['numpy']:.1f} ms (target: 60)")


if __name__ == "__main__":
    main()
