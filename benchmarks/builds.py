"""How long it takes to compile: specs to packages, and kernels at their first use.

    python benchmarks/builds.py

Each build of specs is a process of its own, as on a command line. Where nothing changed it compiles nothing,
given the record that the build before has left; without one it compiles everything and compares. Kernels are
compiled into an empty cache, one after the other, as the first step of an optimizer does it.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]

TARGETS = {"cold": 20.0, "nothing changed": 0.5, "no record": 1.0, "kernel": 2.0, "all kernels": 30.0}

KERNELS = """
import time
import numpy as np
import generated
from solvergen.runtime.native.library import library
library()  # the pool of threads, compiled once whatever the optimizer
for name in generated.__all__:
    optimizer = getattr(generated, name)(np.zeros(8, np.float32), backend="cpu")
    begin = time.perf_counter()
    optimizer.step(np.zeros(8, np.float32))
    print(name, time.perf_counter() - begin)
"""


def build(out: Path, cache: Path) -> float:
    """Seconds of one ``solvergen build`` that keeps its record in ``cache``."""
    environment = {**os.environ, "SOLVERGEN_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "solvergen", "build", str(ROOT / "specs"), "--out", str(out)]
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - begin


def build_anew(out: Path, cache: Path) -> float:
    """The same without a record."""
    shutil.rmtree(cache)
    return build(out, cache)


def kernels(cache: Path) -> dict[str, float]:
    """Seconds of each optimizer's first step in a process with an empty cache."""
    environment = {**os.environ, "SOLVERGEN_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, "-c", KERNELS], check=True, env=environment, stdout=subprocess.PIPE, text=True
    )
    return {name: float(seconds) for name, seconds in map(str.split, run.stdout.splitlines())}


def main() -> int:
    """Print all five figures beside their targets."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "package")
        records = Path(folder, "records")
        cold = build(out, records)
        warm = statistics.median(build(out, records) for _ in range(5))
        anew = statistics.median(build_anew(out, records) for _ in range(5))
        first = kernels(Path(folder, "cache"))
    slowest = max(first, key=lambda name: first[name])
    print(f"build all specs, cold: {cold:.2f} s (target {TARGETS['cold']:.0f})")
    print(f"build, nothing changed: {warm:.2f} s (target {TARGETS['nothing changed']:.1f})")
    print(f"the same, no record of the build before: {anew:.2f} s (target {TARGETS['no record']:.1f})")
    print(
        f"a kernel's first compile: {statistics.median(first.values()):.2f} s, the slowest "
        f"({slowest}) {first[slowest]:.2f} s (target {TARGETS['kernel']:.0f})"
    )
    print(f"all {len(first)} kernels: {sum(first.values()):.1f} s (target {TARGETS['all kernels']:.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
