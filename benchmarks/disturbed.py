"""A step beside other work: another process that spins on one core, and torch's thread pool just used.

    python benchmarks/disturbed.py [--rounds 40]

A training process is never alone. float32 Adam over one tensor of 1M elements, the optimizer's own time only;
quiet and disturbed rounds take turns. Needs torch for the second case.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from generated import Adam  # noqa: E402
from solvergen.bench import conditions  # noqa: E402

ELEMENTS = 1 << 20
STEPS = 20
TARGETS = {"a process spins on one core": 3.0, "torch's threads were just used": 1.3}
SPINNING = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"


def steps(optimizer: Adam, source: np.ndarray, before: Callable[[], object]) -> float:
    """The median of some steps, in seconds."""
    times = []
    for _ in range(STEPS):
        gradient = source.copy()
        before()
        begin = time.perf_counter()
        optimizer.step([gradient])
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


@contextmanager
def spinner() -> Iterator[subprocess.Popen[bytes]]:
    """A process that spins on one of our cores, stopped at first."""
    core = min(os.sched_getaffinity(0))
    process = subprocess.Popen([sys.executable, "-c", SPINNING, str(core)])
    process.send_signal(signal.SIGSTOP)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def turns(rounds: int, quiet: Callable[[], float], disturbed: Callable[[], float]) -> tuple[float, float]:
    """Medians of quiet and disturbed rounds in turns."""
    pairs = [(quiet(), disturbed()) for _ in range(rounds + 2)][2:]
    return statistics.median(q for q, _ in pairs), statistics.median(d for _, d in pairs)


def main() -> int:
    """Run both cases."""
    parser = argparse.ArgumentParser(description="a step beside other work")
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    about = conditions()
    random = np.random.default_rng(1)
    source = random.standard_normal(ELEMENTS, dtype=np.float32)
    optimizer = Adam([source.copy()], backend="cpu")
    results = {}

    def nothing() -> None:
        return

    with spinner() as process:

        def beside_a_spinner() -> float:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.02)
            taken = steps(optimizer, source, nothing)
            process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
            return taken

        name = "a process spins on one core"
        results[name] = turns(rounds, lambda: steps(optimizer, source, nothing), beside_a_spinner)
    try:
        import torch
    except ImportError:
        print("torch isn't installed: its threads can't disturb")
    else:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        left = torch.ones(ELEMENTS)
        results["torch's threads were just used"] = turns(
            rounds,
            lambda: steps(optimizer, source, lambda: time.sleep(0.002)),
            lambda: steps(optimizer, source, lambda: left.mul(1.5)),
        )
    print("; ".join(f"{key} {value}" for key, value in about.items()))
    for name, (quiet, disturbed) in results.items():
        print(
            f"{name}: {1e3 * quiet:.3f} ms quiet, {1e3 * disturbed:.3f} ms disturbed, "
            f"{disturbed / quiet:.2f} x (target {TARGETS[name]})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
